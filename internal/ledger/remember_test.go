package ledger_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// configuration returns the world's chain with tokens.
func (w *world) configuration(tokens ...chain.Token) []chain.Chain {
	return []chain.Chain{{Key: w.chainKey, ID: 1337, Tokens: tokens, Registry: registry, DepositFactory: factory}}
}

var usdcToken, eurcToken = chain.Token{Currency: "USDC", Address: usdc, Decimals: 6}, chain.Token{Currency: "EURC", Address: eurc, Decimals: 6}

// remember starts a replica with chains. The store is the replica's own.
func (w *world) remember(store *db.DB, replica string, chains []chain.Chain) (chain.RememberedChains, error) {
	w.t.Helper()
	after, _, err := ledger.Remember(w.t.Context(), store, ledger.Start{
		Configured: chain.ConfiguredChains{Chains: chains}, Replica: replica, Now: at(start), Scheduled: at(start),
	})
	return after, err
}

func TestRemember(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		for range 2 { // the second time, there is no change
			after, err := w.remember(w.db.store, "", w.configuration(usdcToken, eurcToken))
			w.must(err)
			known, ok := after.Chain(w.chainKey)
			if !ok || !known.Configured || len(known.Tokens) != 2 || len(known.Factories) != 1 {
				t.Fatalf("remembered %+v", after)
			}
		}
		_, err := w.remember(w.db.store, "", w.configuration(usdcToken))
		w.must(err)
		was, err := ledger.Remembered(t.Context(), w.db.store)
		w.must(err)
		chains := was.Configure(w.configuration(usdcToken))
		expect.NoDiff(t, cmp.Diff([]chain.Token{eurcToken}, chains[0].Former), "former tokens")
		renamed := usdcToken
		renamed.Currency = "USDX"
		var refused *chain.RefusedError
		if _, err := w.remember(w.db.store, "", w.configuration(renamed)); !errors.As(err, &refused) {
			t.Errorf("a renamed currency: %v, want a refusal", err)
		}
		now, err := ledger.Remembered(t.Context(), w.db.store)
		w.must(err)
		expect.NoDiff(t, cmp.Diff(was, now), "a refused start changed what is remembered")
		newest, err := w.db.store.NewestRevision(t.Context())
		if w.must(err); newest.Number != 2 {
			t.Errorf("the newest revision is %d, want 2", newest.Number)
		}
	})
}

// TestOlderRevisionWritesNothing lets a replica continue after another one started with another configuration.
func TestOlderRevisionWritesNothing(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.must(w.remember(w.db.store, "old", w.configuration(usdcToken)))
		w.create()
		w.mine(start + 1)
		other := dbtest.Open(t, w.db.url)
		w.must(w.remember(other, "new", w.configuration(usdcToken, eurcToken)))

		var stale *chain.StaleError
		if err := w.Observe(t.Context(), w.chainKey, []ledger.Block{w.next(start + 2)}); !errors.As(err, &stale) || stale.Own != 1 || stale.Newest != 2 {
			t.Errorf("a block: %v, want the error of an older revision", err)
		}
		if _, err := w.Create(t.Context(), ledger.CreateRequest{Draft: w.draft()}); w.db.store.Shared() && !errors.As(err, &stale) {
			t.Errorf("an invoice: %v, want the error of an older revision", err)
		}
		if err := w.db.store.KeepRevision(t.Context(), "old", at(start), at(start+5)); !errors.As(err, &stale) {
			t.Errorf("a note that it runs: %v, want the error of an older revision", err)
		}
		w.must(other.KeepRevision(t.Context(), "new", at(start), at(start+5)))

		// A restarted replica with the former configuration does not stop the others.
		var returned *ledger.ReturnedError
		again := dbtest.Open(t, w.db.url)
		if _, err := w.remember(again, "again", w.configuration(usdcToken)); !errors.As(err, &returned) {
			t.Errorf("a start with the former configuration: %v, want a refusal while others run", err)
		}
		w.must(other.LeaveWork(t.Context(), "new"))
		w.must(w.remember(again, "again", w.configuration(usdcToken)))
		w.Service = w.service(func(c *ledger.Config) { c.Store = again })
		w.create()
	})
}

// TestTokenReturns retires a token, and configures it again. The blocks that were read without it are read again.
func TestTokenReturns(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.must(w.remember(w.db.store, "", w.configuration(usdcToken, eurcToken)))
		_, err := w.remember(w.db.store, "", w.configuration(usdcToken))
		w.must(err)
		w.must(ledger.RetireToken(t.Context(), w.db.store, w.chainKey, eurc, at(start)))
		for n := range 3 {
			w.mine(start + int64(n) + 1)
		}
		after, err := w.remember(w.db.store, "", w.configuration(usdcToken, eurcToken))
		w.must(err)
		cur, err := w.Cursor(t.Context(), w.chainKey)
		w.must(err)
		if cur.Gap == nil || cur.Gap.Next != cur.Indexed.Number-2 || cur.Gap.Last != cur.Indexed.Number {
			t.Errorf("read up to %d, the gap is %+v, want the last three blocks", cur.Indexed.Number, cur.Gap)
		}
		w.Service = w.service(func(c *ledger.Config) { c.Remembered = after })
		inEURC := w.draft()
		inEURC.Currency = "EURC"
		var missed *ledger.MissedBlocksError
		if _, err := w.Create(t.Context(), ledger.CreateRequest{Draft: inEURC}); !errors.As(err, &missed) {
			t.Errorf("an invoice in the token that returned: %v, want a refusal until the blocks are read", err)
		}
		w.create()
		w.final()
		w.fill(cur.Gap.Next, cur.Indexed, w.blocks[len(w.blocks)-3:]...)
		for range 2 {
			if _, err := w.Create(t.Context(), ledger.CreateRequest{Draft: inEURC}); err != nil {
				t.Errorf("after the blocks are read: %v", err)
			}
		}
		now, err := ledger.Remembered(t.Context(), w.db.store)
		w.must(err)
		if known, _ := now.Chains[0].TokenAt(eurc); known.MissedThrough != nil || known.Retired() {
			t.Errorf("remembered %+v, want no missed blocks", known)
		}
	})
}

func TestRetireToken(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		w.must(w.remember(w.db.store, "", w.configuration(usdcToken, eurcToken)))
		retire := func() error { return ledger.RetireToken(t.Context(), w.db.store, w.chainKey, eurc, at(start)) }
		var refused *ledger.TokenInUseError
		if err := retire(); !errors.As(err, &refused) {
			t.Errorf("a configured token: %v, want a refusal", err)
		}
		inv := w.create(func(d *invoice.Draft) { d.Currency = "EURC" })
		w.must(w.remember(w.db.store, "", w.configuration(usdcToken)))
		if err := retire(); !errors.As(err, &refused) {
			t.Errorf("a token with an open invoice: %v, want a refusal", err)
		}
		w.must(w.Void(t.Context(), w.own(), inv.ID))
		w.must(retire())
	})
}

// TestRenameChain renames a chain under an open invoice and a payment. Both keep their ids, also when the block is read
// again, and no row has the former key.
func TestRenameChain(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		_, err := w.remember(w.db.store, "", w.configuration(usdcToken))
		w.must(err)
		paid, open := w.create(), w.create(deposited)
		w.mine(start+1, w.pay(paid.TransferAmount))
		was := w.payment(w.blocks[len(w.blocks)-1].Transfers[0])
		from, to := w.chainKey, w.chainKey+"-renamed"
		fresh := dbtest.Open(t, w.db.url)
		w.must(ledger.RenameChain(t.Context(), fresh, from, to, at(start)))
		if err := ledger.RenameChain(t.Context(), fresh, from, to, at(start)); !errors.Is(err, ledger.ErrUnknownChain) {
			t.Errorf("a second rename: %v, want %v", err, ledger.ErrUnknownChain)
		}
		var stale *chain.StaleError
		if _, err := w.Create(t.Context(), ledger.CreateRequest{Draft: w.draft()}); w.db.store.Shared() && !errors.As(err, &stale) {
			t.Errorf("a replica that runs creates an invoice: %v", err)
		}

		w.chainKey = to
		after, err := w.remember(fresh, "", w.configuration(usdcToken))
		w.must(err)
		if known, _ := after.Chain(to); known.IDKey != from || !known.Read {
			t.Errorf("remembered %+v", known)
		}
		w.Service = w.service(func(c *ledger.Config) { c.Store = fresh })
		for _, inv := range []invoice.Invoice{paid, open} {
			got, err := ledger.NewReader(fresh).Invoice(t.Context(), inv.ID)
			if w.must(err); got.ChainKey != to || got.DepositAddress != inv.DepositAddress || got.CommitmentID != inv.CommitmentID {
				t.Errorf("the invoice became %+v", got)
			}
		}
		for i := range w.blocks {
			for j := range w.blocks[i].Transfers {
				w.blocks[i].Transfers[j].ChainKey = to
			}
		}
		w.final()
		gap, err := w.Rescan(t.Context(), to, 101)
		w.must(err)
		w.fill(gap.Next, w.blocks[len(w.blocks)-1].Header, w.blocks[1:]...)
		payments, err := ledger.NewReader(fresh).PaymentsOfInvoices(t.Context(), []string{paid.ID})
		if w.must(err); len(payments) != 1 || payments[0].ID != was.ID || payments[0].ChainKey != to || payments[0].Status != invoice.Confirmed {
			t.Errorf("payments %+v, want %s confirmed", payments, was.ID)
		}
	})
}

// TestFirstStartAfterUpgrade starts on a chain that an earlier version read, which recorded no configuration.
func TestFirstStartAfterUpgrade(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.create()
		w.create(func(d *invoice.Draft) { d.Currency = "EURC" })
		renamed := usdcToken
		renamed.Currency = "USDX"
		var refused *chain.RefusedError
		if _, err := w.remember(w.db.store, "", w.configuration(renamed)); !errors.As(err, &refused) {
			t.Errorf("a currency that was renamed with the upgrade: %v, want a refusal", err)
		}
		after, err := w.remember(w.db.store, "", w.configuration(usdcToken))
		w.must(err)
		known, _ := after.Chain(w.chainKey)
		if len(known.Tokens) != 2 || known.Tokens[0].FirstBlock != nil || known.Tokens[1].FirstBlock != nil || known.ID != 1337 {
			t.Errorf("remembered %+v", known)
		}
		expect.NoDiff(t, cmp.Diff([]chain.Token{eurcToken}, after.Configure(w.configuration(usdcToken))[0].Former), "tokens that are read for their invoices")
	})
}
