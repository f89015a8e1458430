package checkout

import (
	"errors"
	"regexp"
	"strings"

	"github.com/quittance/quittance/internal/invoice"
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

// Errors of parseTxHash. They are shown to the payer.
var (
	errNoHash = errors.New("This is not a transaction’s hash. It begins with 0x and has 64 digits and letters from a to f; exchanges also call it TxID.")        //nolint:staticcheck,revive // a sentence on the page
	errIsAddr = errors.New("This is an address, not a transaction’s hash. The hash has 64 digits and letters after 0x; your wallet shows it with the transfer.") //nolint:staticcheck,revive // a sentence on the page
	errHashes = errors.New("There are several hashes in this. Enter the hash of one transaction.")                                                               //nolint:staticcheck,revive // a sentence on the page
)

// parseTxHash returns the one transaction hash in a payer's input: a hash with or without
// 0x, or the URL of a page that shows it.
func parseTxHash(typed string) (invoice.Hash, error) {
	if len(typed) > maxTyped {
		return invoice.Hash{}, errNoHash
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
				return invoice.Hash{}, errNoHash
			}
			if !found.IsZero() && found != h {
				return invoice.Hash{}, errHashes
			}
			found = h
		}
	}
	switch {
	case !found.IsZero():
		return found, nil
	case isAddress:
		return invoice.Hash{}, errIsAddr
	}
	return invoice.Hash{}, errNoHash
}
