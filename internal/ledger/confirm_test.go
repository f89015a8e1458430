package ledger_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// TestConfirmFailsAfterATransferMoved lets another replica observe a verified payment, or a sweep, in a later block.
func TestConfirmFailsAfterATransferMoved(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		for name, transfer := range map[string]func(*world, invoice.Invoice, uint64) invoice.Transfer{"payment": (*world).deposit, "sweep": (*world).sweep} {
			w := w.db.world(t)
			inv := w.create(deposited)
			moved := transfer(w, inv, 1_000_000)
			w.mine(start+1, moved)
			line := w.mine(inv.ExpiresAt.Unix() + 1)
			_, revision, err := w.Pending(t.Context(), w.chainKey, line.Number)
			w.must(err)
			again := w.next(inv.ExpiresAt.Unix()+2, moved)
			w.must(w.service().Observe(t.Context(), w.chainKey, []ledger.Block{again}))
			if _, err := w.Service.Confirm(t.Context(), w.chainKey, line, revision, 0); !errors.Is(err, ledger.ErrCursorMoved) {
				t.Errorf("confirming below the new block of a %s: %v, want ErrCursorMoved", name, err)
			}
		}
	})
}

// TestReplicasConfirmTheirRevisions interleaves two replicas at random, which verify, roll back, observe with or
// without the payments, and confirm. Exactly the payments that the confirming replica had verified may become final.
func TestReplicasConfirmTheirRevisions(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *database) {
		rapid.Check(t, func(r *rapid.T) {
			w := d.world(t)
			w.create() // so that the address is watched
			replicas := []*replica{{Service: w.Service}, {Service: w.service()}}
			pick := func() *replica { return replicas[rapid.IntRange(0, 1).Draw(r, "replica")] }
			blocks := w.blocks[:1]
			top := func() invoice.Header { return blocks[len(blocks)-1].Header }
			final, done := 0, make(map[invoice.Hash]bool)
			r.Repeat(map[string]func(*rapid.T){
				"observe": func(r *rapid.T) {
					w.blocks = blocks
					b := w.next(top().Time.Unix()+1, w.pay(invoice.NewAmount(7)))
					if rapid.Bool().Draw(r, "empty") {
						b.Transfers = nil
					}
					w.must(pick().Observe(t.Context(), w.chainKey, []ledger.Block{b}))
					blocks = append(blocks, b)
				},
				"read anew": func(r *rapid.T) {
					if len(blocks)-1 == final {
						r.Skip("all is final")
					}
					from := rapid.IntRange(final, len(blocks)-2).Draw(r, "from")
					p := pick()
					w.must(p.Rollback(t.Context(), w.chainKey, blocks[from].Header))
					for i := range blocks[from+1:] {
						if b := &blocks[from+1+i]; rapid.Bool().Draw(r, "without") {
							b.Transfers = nil
						}
					}
					w.must(p.Observe(t.Context(), w.chainKey, blocks[from+1:]))
				},
				"verify": func(*rapid.T) { pick().verify(t, w, top()) },
				"confirm": func(r *rapid.T) {
					p := pick()
					if p.line.Number <= blocks[final].Number {
						r.Skip("nothing was verified")
					}
					_, err := p.Confirm(t.Context(), w.chainKey, p.line, p.revision, 0)
					if errors.Is(err, ledger.ErrCursorMoved) {
						return
					}
					w.must(err)
					var became []invoice.Transfer
					for final < len(blocks)-1 && blocks[final].Number < p.line.Number {
						final++
						became = append(became, blocks[final].Transfers...)
					}
					p.wantVerified(r, became, done)
				},
			})
		})
	})
}

// replica is one of several services, with the transfers that it verified last.
type replica struct {
	*ledger.Service
	line     invoice.Header
	verified []invoice.Transfer
	revision int64
}

func (p *replica) verify(t *testing.T, w *world, line invoice.Header) {
	t.Helper()
	var err error
	p.line = line
	p.verified, p.revision, err = p.Pending(t.Context(), w.chainKey, line.Number)
	w.must(err)
}

// wantVerified fails the test unless the newly final transfers are exactly the ones that the replica
// verified and that were not final before.
func (p *replica) wantVerified(r *rapid.T, became []invoice.Transfer, final map[invoice.Hash]bool) {
	known := make(map[invoice.Hash]bool)
	for _, t := range p.verified {
		known[t.TxHash] = true
	}
	for _, t := range became {
		if !known[t.TxHash] {
			r.Fatalf("the transfer of %s became final, and was not verified", t.TxHash)
		}
		final[t.TxHash] = true
	}
	for _, t := range p.verified {
		if !final[t.TxHash] {
			r.Fatalf("the transfer of %s was verified, and is not final", t.TxHash)
		}
	}
}
