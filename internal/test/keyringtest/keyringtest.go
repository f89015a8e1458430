// Package keyringtest makes master keys for tests.
package keyringtest

import (
	"crypto/rand"
	"testing"

	"github.com/quittance/quittance/internal/access"
)

// Key returns a random master key.
func Key(tb testing.TB) access.MasterKey {
	tb.Helper()
	text, err := access.NewMasterKey(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	key, err := access.ParseMasterKey(text)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

// New returns a keyring with a random master key.
func New(tb testing.TB) *access.Keyring {
	tb.Helper()
	return access.NewKeyring(Key(tb))
}
