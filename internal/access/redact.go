package access

import (
	"net/url"
	"regexp"
	"strings"
)

// keyText matches the beginning of a key and the characters after it, so that a mistyped key is found too.
var keyText = regexp.MustCompile(`(?i)qk(_|%5f)(live|test)(_|%5f)[0-9a-z]+`)

// ContainsKey reports whether a text holds a key, or something that looks like one.
func ContainsKey(text string) bool {
	return strings.ContainsAny(text, "qQ") && keyText.MatchString(text) // a quick check, because most texts contain no key
}

// Redact replaces all keys in a text that is to be logged.
func Redact(text string) string {
	if len(text) < len("qk_live_") {
		return text
	}
	return keyText.ReplaceAllString(text, "qk_REDACTED")
}

// WithoutQuery returns a URL with its query, which may hold a secret, replaced by "…".
func WithoutQuery(target string) string {
	u, err := url.Parse(target)
	if err != nil || u.RawQuery == "" {
		return target
	}
	u.RawQuery = ""
	return u.String() + "?…"
}

// RedactError returns err with all keys in its text replaced. It wraps err.
func RedactError(err error) error {
	if text := err.Error(); ContainsKey(text) {
		return redactedError{err, Redact(text)}
	}
	return err
}

// redactedError is an error with another text.
type redactedError struct {
	error
	text string
}

// Error returns the text without keys.
func (e redactedError) Error() string { return e.text }

// Unwrap returns the error with the whole text.
func (e redactedError) Unwrap() error { return e.error }
