package api

import (
	"encoding/base64"
	"errors"
	"strings"
)

// A cursor names the last element of a page: the version of its form, the
// list that it belongs to, and the element's key in that list's order. It is
// encoded so that nobody takes it for something to build by hand.

// The lists' names in cursors.
const (
	cursorInvoices = "1.invoices."
	cursorPayments = "1.payments."
)

func formatCursor(list, key string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(list + key))
}

// parseCursor returns the key in a cursor of that list.
func parseCursor(list, cursor string) (string, error) {
	text, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	key, found := strings.CutPrefix(string(text), list)
	if err != nil || !found || key == "" || len(cursor) > MaxCursor || !visible(key) {
		return "", errors.New("must be the nextCursor of an answer to the same request")
	}
	return key, nil
}
