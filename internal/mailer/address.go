package mailer

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/mail"
	"regexp"
	"strings"
	"unicode"
)

// MaxAddress bounds an e-mail address, in bytes (RFC 5321).
const MaxAddress = 254

// validAddress reports whether the text is exactly one e-mail address: visible ASCII characters, with
// a host name that has a dot. It refuses a quoted local part or the address of a host by number,
// because payers do not have such addresses.
func validAddress(text string) bool {
	if len(text) > MaxAddress || strings.ContainsFunc(text, func(c rune) bool {
		return c > unicode.MaxASCII || c <= ' ' || strings.ContainsRune("\"(),:;<>[\\]\x7f", c)
	}) {
		return false
	}
	a, err := mail.ParseAddress(text)
	if err != nil || a.Address != text || a.Name != "" {
		return false
	}
	host := text[strings.LastIndexByte(text, '@')+1:]
	return strings.Contains(host, ".")
}

// addresses matches mail addresses that a server repeats, and others, such as those to which it forwards.
var addresses = regexp.MustCompile(`[^\s<>]+@[^\s<>]+`)

// withoutAddresses returns an error without the mail addresses in it.
func withoutAddresses(err error) error {
	if !addresses.MatchString(err.Error()) {
		return err
	}
	text := addresses.ReplaceAllLiteralString(err.Error(), "…")
	if answer := (*AnswerError)(nil); errors.As(err, &answer) {
		return &AnswerError{text, answer.Recipient}
	}
	return errors.New(text)
}

// mailboxOf returns a hash of the mailbox that an address reaches: most servers ignore the case, and what follows a plus
// sign in the local part.
func mailboxOf(address string) string {
	at := strings.LastIndexByte(address, '@')
	local, _, _ := strings.Cut(address[:at], "+")
	sum := sha256.Sum256([]byte(strings.ToLower(local + address[at:])))
	return hex.EncodeToString(sum[:])
}

// reason returns why an attempt failed, as the merchant may see it: what the server answered, without addresses.
func reason(err error) string {
	answer := (*AnswerError)(nil)
	if !errors.As(err, &answer) {
		return "it could not be handed to the mail server"
	}
	text := []rune(oneLine(strings.ToValidUTF8(withoutAddresses(answer).Error(), "?")))
	return string(text[:min(len(text), maxError)])
}
