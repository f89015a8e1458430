package checkout

import (
	"regexp"
	"strings"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/web/checkout/locale"
)

// maxTyped bounds the input that is parsed, in bytes.
const maxTyped = 1000

// hexRun matches a run of hex digits, with or without 0x.
var hexRun = regexp.MustCompile(`(?:0[xX])?[0-9a-fA-F]+`)

// Lengths in hex digits.
const (
	hashDigits    = 2 * len(invoice.Hash{})
	addressDigits = 2 * len(invoice.Address{})
)

// problem is the id of a text about input that the payer can correct.
type problem string

// in returns the text in a language.
func (p problem) in(text *locale.Text) string { return text.T(string(p), nil) }

// Problems of parseTxHash.
const (
	noHash        problem = "problem.noHash"
	isAnAddress   problem = "problem.isAddress"
	severalHashes problem = "problem.severalHashes"
)

// parseTxHash returns the one transaction hash in a payer's input: a hash with or without
// 0x, or the URL of a page that shows it. The problem is empty on success.
func parseTxHash(typed string) (invoice.Hash, problem) {
	if len(typed) > maxTyped {
		return invoice.Hash{}, noHash
	}
	var found invoice.Hash
	isAddress := false
	for _, run := range hexRun.FindAllString(typed, -1) {
		digits := run
		if len(run) > 1 && (run[1] == 'x' || run[1] == 'X') {
			digits = run[2:]
		}
		switch len(digits) {
		case addressDigits:
			isAddress = true
		case hashDigits:
			h, err := invoice.ParseHash("0x" + strings.ToLower(digits))
			if err != nil {
				return invoice.Hash{}, noHash
			}
			if !found.IsZero() && found != h {
				return invoice.Hash{}, severalHashes
			}
			found = h
		}
	}
	switch {
	case !found.IsZero():
		return found, ""
	case isAddress:
		return invoice.Hash{}, isAnAddress
	}
	return invoice.Hash{}, noHash
}
