package mailer

import (
	"errors"
	"net/mail"
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

// withoutAddress returns an error without a mail address that a server repeats in it.
func withoutAddress(err error, address string) error {
	if address == "" || !strings.Contains(err.Error(), address) {
		return err
	}
	return errors.New(strings.ReplaceAll(err.Error(), address, "…"))
}
