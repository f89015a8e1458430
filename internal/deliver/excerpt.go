package deliver

import (
	"bytes"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"
)

// limitedWriter keeps the first bytes that are written to it, and takes the
// others without keeping them.
type limitedWriter struct {
	to   *bytes.Buffer
	left int
}

// Write is io.Writer's.
func (w *limitedWriter) Write(p []byte) (int, error) {
	n := min(len(p), w.left)
	w.left -= n
	w.to.Write(p[:n])
	return len(p), nil
}

// excerpt makes a body's first bytes text that every database takes. What is
// no text, such as a compressed body, is only described.
func excerpt(begin []byte) string {
	text := begin
	for i := 0; i < utf8.UTFMax && !utf8.Valid(text); i++ {
		text = text[:len(text)-min(1, len(text))] // a character that the limit cut in two
	}
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return fmt.Sprintf("(%d bytes that are no text)", len(begin))
	}
	return string(text)
}

// redacted stands where a secret stood.
const redacted = "[redacted]"

// secretive finds what looks like a secret: of a webhook, of an Authorization
// header, or a signature of ours that a receiver shows. In JSON and URLs, slashes
// and plus signs of base64 are often escaped.
var secretive = regexp.MustCompile(`whsec_[A-Za-z0-9+/_=%\\-]+|(?i:bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}|v1[=,][A-Za-z0-9+/=]{32,}`)

// redact takes the endpoint's secrets, and what looks like one, out of a text.
func (e Endpoint) redact(text string) string {
	for _, secret := range e.secrets() {
		for _, form := range []string{secret, strings.TrimPrefix(secret, "whsec_")} {
			if form != "" {
				text = strings.NewReplacer(form, redacted, strings.ReplaceAll(form, "/", `\/`), redacted, url.QueryEscape(form), redacted).Replace(text)
			}
		}
	}
	return secretive.ReplaceAllString(text, redacted)
}
