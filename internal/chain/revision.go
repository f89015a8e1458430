package chain

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/quittance/quittance/internal/invoice"
)

// Revision is a configuration that replicas run.
type Revision struct {
	Number int64 // from 1
	Hash   string
}

// Hash identifies the settings. Two configurations with the same hash treat money the same way.
func (c ConfiguredChains) Hash() string {
	h := sha256.New()
	chains := slices.SortedFunc(slices.Values(c.Chains), func(a, b Chain) int { return cmp.Compare(a.Key, b.Key) })
	for _, c := range chains {
		fmt.Fprintf(h, "chain %q %d %s %s %s\n", c.Key, c.ID, c.Registry, c.DepositFactory, c.AuthorizationRelay)
		tokens := slices.SortedFunc(slices.Values(c.Tokens), func(a, b Token) int { return cmp.Compare(a.Address.String(), b.Address.String()) })
		for _, t := range tokens {
			fmt.Fprintf(h, "token %q %s %d\n", t.Currency, t.Address, t.Decimals)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.Merchants)) {
		m := c.Merchants[id]
		fmt.Fprintf(h, "merchant %q %s %s\n", id, m.Tolerance, cmp.Or(m.Collection, invoice.Direct))
		for _, a := range slices.SortedFunc(slices.Values(m.Allowed), func(a, b invoice.AllowedAddress) int {
			return cmp.Or(cmp.Compare(a.ChainKey, b.ChainKey), bytes.Compare(a.Address[:], b.Address[:]))
		}) {
			fmt.Fprintf(h, "allowed %q %s\n", a.ChainKey, a.Address)
		}
	}
	if c.Screening != "" {
		fmt.Fprintf(h, "screening %s\n", c.Screening)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// StaleError is the error of a replica with an older revision than the others.
type StaleError struct{ Own, Newest int64 }

// Error returns what to do.
func (e *StaleError) Error() string {
	return fmt.Sprintf("runs configuration revision %d; the others run %d; restart it with the current configuration", e.Own, e.Newest)
}

// Unavailable returns the error text for a client.
func (e *StaleError) Unavailable() string {
	return fmt.Sprintf("This replica runs configuration revision %d, and the others run %d. Repeat the request; another replica answers it.", e.Own, e.Newest)
}
