// Package keyringtest makes master keys for tests.
package keyringtest

import (
	"crypto/rand"
	"testing"

	"github.com/quittance/quittance/internal/keyring"
)

// Key returns a random master key.
func Key(tb testing.TB) keyring.Key {
	tb.Helper()
	text, err := keyring.NewKey(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	key, err := keyring.ParseKey(text)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

// New returns a keyring with a random master key.
func New(tb testing.TB) *keyring.Keyring {
	tb.Helper()
	return keyring.New(Key(tb))
}
