package webhooks

import (
	"bytes"
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/quittance/quittance/webhook"
)

// limitedWriter keeps the first bytes that are written to it and discards the rest.
type limitedWriter struct {
	to   *bytes.Buffer
	left int
}

// Write keeps what fits and never fails.
func (w *limitedWriter) Write(p []byte) (int, error) {
	n := min(len(p), w.left)
	w.left -= n
	w.to.Write(p[:n])
	return len(p), nil
}

// excerpt returns a body's first bytes as text that every database accepts. A body that is not text, such as a
// compressed one, is only described.
func excerpt(begin []byte) string {
	text := begin
	for i := 0; i < utf8.UTFMax && !utf8.Valid(text); i++ {
		text = text[:len(text)-min(1, len(text))] // remove a character that the limit cut in two
	}
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return fmt.Sprintf("(%d bytes that are no text)", len(begin))
	}
	return string(text)
}

// redacted replaces a secret.
const redacted = "[redacted]"

// secretive matches text that looks like a secret: a webhook secret, an Authorization header, or one of our signatures
// that a receiver repeats. In JSON and URLs, slashes and plus signs of base64 are often escaped.
var secretive = regexp.MustCompile(`whsec_[A-Za-z0-9+/_=%\\-]+|(?i:bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}|v1[=,][A-Za-z0-9+/=]{32,}`)

// Shorter parts of a URL and of headers are words rather than secrets.
const (
	minSecretWord  = 16 // bytes: a label of the host, a segment of the path
	minSecretValue = 8  // bytes: a value of the query, a word of a header's value, an account's name or password
	minHeaderValue = 4  // bytes: the whole value of a header
	minSecretBegin = 4  // bytes: the beginning of a secret at the end of a truncated text
)

// redact removes from a text the secrets that sign for the endpoint, secrets in its URL, and text that looks like a
// secret. If the text was truncated, its end may be the beginning of a secret.
func (e Endpoint) redact(text string, cut bool) string {
	if text == "" {
		return ""
	}
	forms := e.secretForms()
	for _, form := range forms {
		text = strings.ReplaceAll(text, form, redacted)
	}
	text = secretive.ReplaceAllString(text, redacted)
	for i := 0; cut && i < len(forms); i++ {
		text = withoutBegin(text, forms[i])
	}
	return text
}

// withoutBegin removes the beginning of a secret from the end of a text.
func withoutBegin(text, secret string) string {
	for n := min(len(text), len(secret)-1); n >= minSecretBegin; n-- {
		if rest, ok := strings.CutSuffix(text, secret[:n]); ok {
			return rest + redacted
		}
	}
	return text
}

// secretForms returns the endpoint's secrets in the forms in which a text may contain them, the longest first:
// unchanged, and escaped as in JSON, in URLs and by Go.
func (e Endpoint) secretForms() []string {
	var forms []string
	for _, secret := range e.secretTexts() {
		quoted := strconv.Quote(secret)
		forms = append(forms, secret, strings.ReplaceAll(secret, "/", `\/`), url.QueryEscape(secret), url.PathEscape(secret), quoted[1:len(quoted)-1])
	}
	slices.SortFunc(forms, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return slices.Compact(forms)
}

func (e Endpoint) secretTexts() []string {
	var all []string
	add := func(least int, texts ...string) {
		for _, text := range texts {
			if len(text) >= least {
				all = append(all, text)
			}
		}
	}
	for _, secret := range e.secrets() {
		add(1, secret, strings.TrimPrefix(secret, webhook.SecretPrefix))
	}
	for _, h := range e.Headers {
		add(minHeaderValue, h.Value)
		add(minSecretValue, strings.Fields(h.Value)...)
	}
	u, err := url.Parse(e.URL)
	if err != nil {
		return all // no message is sent to it
	}
	add(minSecretWord, strings.Split(u.Hostname(), ".")...)
	add(minSecretWord, strings.Split(u.Path, "/")...)
	add(minSecretWord, strings.Split(u.EscapedPath(), "/")...)
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		value := part[strings.IndexByte(part, '=')+1:]
		add(minSecretValue, value)
		if plain, err := url.QueryUnescape(value); err == nil {
			add(minSecretValue, plain)
		}
	}
	password, _ := u.User.Password()
	add(minSecretValue, u.User.Username(), password)
	return all
}
