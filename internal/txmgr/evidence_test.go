package txmgr

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/dev/devchain"
	"github.com/quittance/quittance/internal/invoice"
)

// counter is a node of a chain where an account has sent some transactions.
type counter struct {
	chain, sent uint64
	err         error
}

func (c counter) answer(result any, method string) error {
	n := c.sent
	if method == "eth_chainId" {
		n = c.chain
	}
	return errors.Join(c.err, result.(*chain.Quantity).UnmarshalJSON([]byte(`"`+hexutil.EncodeUint64(n)+`"`)))
}

// CallContext implements Client.
func (c counter) CallContext(_ context.Context, result any, method string, _ ...any) error {
	return c.answer(result, method)
}

// BatchCallContext implements Client.
func (c counter) BatchCallContext(_ context.Context, batch []rpc.BatchElem) error {
	for i := range batch {
		batch[i].Error = c.answer(batch[i].Result, batch[i].Method)
	}
	return nil
}

// TestNoncesThatNodesSay compares the nonces at a start, with nodes that disagree. Only a number that two nodes report
// counts, or the only node's number.
func TestNoncesThatNodesSay(t *testing.T) {
	t.Parallel()
	const id = 31337
	down := counter{err: errors.New("down")}
	for name, c := range map[string]struct {
		nodes []Client
		used  uint64
		known bool
	}{
		"one node":                     {[]Client{counter{chain: id, sent: 7}}, 7, true},
		"one that is down":             {[]Client{down}, 0, false},
		"one of another chain":         {[]Client{counter{chain: 1, sent: 7}}, 0, false},
		"two":                          {[]Client{counter{chain: id, sent: 7}, counter{chain: id, sent: 7}}, 7, true},
		"one of two is behind":         {[]Client{counter{chain: id, sent: 7}, counter{chain: id, sent: 5}}, 5, true},
		"one of two is down":           {[]Client{counter{chain: id, sent: 7}, down}, 0, false},
		"one of two of another chain":  {[]Client{counter{chain: id, sent: 7}, counter{chain: 1, sent: 9}}, 0, false},
		"one of three says too much":   {[]Client{counter{chain: id, sent: 7}, counter{chain: id, sent: 99}, counter{chain: id, sent: 7}}, 7, true},
		"one of three is down":         {[]Client{counter{chain: id, sent: 7}, down, counter{chain: id, sent: 6}}, 6, true},
		"nothing was sent":             {[]Client{counter{chain: id}, counter{chain: id}}, 0, true},
		"two of another chain of many": {[]Client{counter{chain: 1, sent: 9}, counter{chain: id, sent: 7}, counter{chain: 1, sent: 9}}, 0, false},
	} {
		w := &Writer{conf: Config{Chain: chain.Chain{ID: id}, Nodes: func() []Client { return c.nodes }}}
		if used, pending, known := w.usedNonces(t.Context()); used != c.used || pending != c.used || known != c.known {
			t.Errorf("%s: %d nonces, certain %v; want %d, %v", name, used, known, c.used, c.known)
		}
	}
}

// TestCompareNonces starts writers on a database that was restored, and on ones that were not.
func TestCompareNonces(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		suspected := func() bool {
			r, err := w.store.Recovery(t.Context())
			must(t, err)
			return r.State != db.RecoveryNormal
		}
		for range 2 { // a start, with transactions of this service in every state
			writer := w.writer()
			must(t, writer.CompareNonces(t.Context(), 0))
			w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
			w.tick(writer)
			must(t, w.writer().CompareNonces(t.Context(), 0))
			w.seal(1)
			must(t, w.writer().CompareNonces(t.Context(), 0))
			w.tick(writer)
			must(t, writer.release(t.Context()))
		}
		running := w.writer()
		must(t, running.CompareNonces(t.Context(), 0))
		w.external(w.dev.Keys.Operator, pack(invoice.IntentOpen, nil, 0)) // while the service runs
		w.seal(1)
		w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
		for range 2 {
			_ = running.tick(t.Context()) // it waits until the nonce is certain
			w.clock.Add(lostAfter)
		}
		w.seal(1)
		w.tick(running)
		w.wantTxs(TxMined, TxMined, TxMined)
		must(t, running.release(t.Context()))
		must(t, w.writer().CompareNonces(t.Context(), 0))
		if suspected() {
			t.Fatal("a false alarm")
		}
		w.external(w.dev.Keys.Operator, pack(invoice.IntentOpen, nil, 0)) // while it is stopped
		w.seal(1)
		must(t, w.writer().CompareNonces(t.Context(), 0))
		if !suspected() {
			t.Error("nothing was noticed")
		}
	})
}

// TestPendingNoncesAreAcceptedAtFirst starts a writer for the first time, as after a recovery, while a transaction of the
// lost past waits in the pool. It is mined later, and no evidence.
func TestPendingNoncesAreAcceptedAtFirst(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		for nonce, want := range []bool{false, true} {
			w.external(w.dev.Keys.Operator, pack(invoice.IntentOpen, nil, 0))
			if nonce == 0 {
				must(t, w.writer().CompareNonces(t.Context(), 0))
			}
			w.seal(1)
			suspected, err := NoteSigned(t.Context(), w.store, chain.Local, invoice.Address(devchain.Address(w.dev.Keys.Operator)), uint64(nonce), invoice.Hash{1}, time.Unix(1000, 0))
			if err != nil || suspected != want {
				t.Errorf("nonce %d: evidence %v, %v; want %v", nonce, suspected, err, want)
			}
		}
	})
}

// TestNoncesBeforeTheFirstTransaction has nodes not answer at the start. The writer compares before it sends a
// transaction.
func TestNoncesBeforeTheFirstTransaction(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		must(t, w.writer().CompareNonces(t.Context(), 0))
		w.external(w.dev.Keys.Operator, pack(invoice.IntentOpen, nil, 0))
		w.seal(1)
		writer := w.writer()
		w.net.cut("eth_chainId")
		must(t, writer.CompareNonces(t.Context(), 0))
		w.net.before = nil
		w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
		_ = writer.tick(t.Context()) // one node reports it
		w.clock.Add(lostAfter)
		if err := writer.tick(t.Context()); !errors.Is(err, errRestored) {
			t.Errorf("the round ended with %v", err)
		}
		if err := writer.tick(t.Context()); !errors.Is(err, errRestored) {
			t.Errorf("the next round ended with %v", err)
		}
		w.wantTxs()
	})
}

// TestNoncesUsedByHandWhileIdle has a person send with the operator's key while the service runs and has no
// transactions to send. That is not evidence at the next start.
func TestNoncesUsedByHandWhileIdle(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		running := w.writer()
		must(t, running.CompareNonces(t.Context(), 0))
		w.external(w.dev.Keys.Operator, pack(invoice.IntentOpen, nil, 0))
		w.seal(1)
		w.clock.Add(noteEvery)
		w.tick(running)
		must(t, running.release(t.Context()))
		must(t, w.writer().CompareNonces(t.Context(), 0))
		r, err := w.store.Recovery(t.Context())
		must(t, err)
		if r.State != db.RecoveryNormal {
			t.Errorf("a false alarm: %s", r.Reason)
		}
	})
}
