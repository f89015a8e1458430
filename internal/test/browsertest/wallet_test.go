package browsertest

import (
	"testing"
	"time"
)

// TestSend sends transactions of accounts that were just funded, one right after the other, while
// blocks are made. Each account has its coins by then, and no nonce is used twice.
func TestSend(t *testing.T) {
	const fastest = 50 * time.Millisecond
	w := Start(t, WorldOptions{BlockTime: fastest})
	for range 3 {
		wallet := NewWallet(t, w, "Fox", w.NewAccount(0, true))
		for i := range 10 {
			if _, err := wallet.Send(t.Context(), wallet.Address(), nil); err != nil {
				t.Fatalf("transaction %d: %v", i, err)
			}
		}
	}
}
