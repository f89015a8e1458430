package txmgr

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// fate is the fate of a request at the proxy.
type fate int

const (
	arrives fate = iota
	requestLost
	answerLost
	doubled
	frozen // it arrives, and no answer is sent
)

// faultyProxy is a proxy of a node that delivers, loses or delays requests.
type faultyProxy struct {
	node  string // its URL
	line  *http.Transport
	mu    sync.Mutex
	fates func() fate
}

// newFaultyProxy returns a proxy and its URL.
func newFaultyProxy(tb testing.TB, node string) (*faultyProxy, string) {
	tb.Helper()
	w := &faultyProxy{node: node, line: &http.Transport{}}
	server := httptest.NewServer(w)
	tb.Cleanup(func() {
		server.Close()
		w.line.CloseIdleConnections()
	})
	return w, server.URL
}

// decide sets the function that chooses the fates.
func (w *faultyProxy) decide(fates func() fate) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fates = fates
}

func (w *faultyProxy) next() fate {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fates == nil {
		return arrives
	}
	return w.fates()
}

func (w *faultyProxy) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	request, err := io.ReadAll(r.Body)
	which := w.next()
	if err != nil || which == requestLost {
		panic(http.ErrAbortHandler)
	}
	if which == frozen {
		<-r.Context().Done()
		return
	}
	if which == doubled {
		if _, err := w.forward(r.Context(), request); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
	answer, err := w.forward(r.Context(), request)
	if err != nil || which == answerLost {
		panic(http.ErrAbortHandler)
	}
	out.Header().Set("Content-Type", "application/json")
	out.Write(answer) //nolint:errcheck // the peer may be gone
}

func (w *faultyProxy) forward(ctx context.Context, request []byte) (_ []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.node, bytes.NewReader(request))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := w.line.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close() //nolint:errcheck // it is only read
	return io.ReadAll(answer.Body)
}

func newPool(tb testing.TB, url string) *chain.Client {
	tb.Helper()
	e, err := chain.NewClient(chain.ClientConfig{URL: url})
	must(tb, err)
	tb.Cleanup(e.Close)
	return e
}

// trafficTime is how often a block is sealed while a writer runs.
const trafficTime = 20 * time.Millisecond

// patience bounds a wait for a writer that may be stuck.
const patience = 5 * time.Minute

// traffic opens invoices while more is true, and seals and indexes blocks until all intents are done. It calls between
// after every block, and returns the commitments.
func (w *world) traffic(more func(round int) bool, between func()) []invoice.Hash {
	w.Helper()
	waitLimit, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	clock := time.NewTicker(trafficTime)
	defer clock.Stop()
	var opened []invoice.Hash
	for round := 0; ; round++ {
		going := more(round)
		if going {
			some := commitments(1 + round%3)
			w.enqueueIntents(invoice.IntentOpen, some...)
			opened = append(opened, some...)
		}
		w.seal(1)
		w.index()
		between()
		if !going && w.allDone() {
			return opened
		}
		select {
		case <-clock.C:
		case <-waitLimit.Done():
			w.Fatalf("after %s not all of %d intents are done", patience, len(opened))
		}
	}
}

// wantEveryNonceUsed requires that the saved transactions have the nonces that the operator used, each one once, and
// are all mined.
func (w *world) wantEveryNonceUsed() {
	w.Helper()
	all := w.txs()
	if uint64(len(all)) != w.nonce() {
		w.Errorf("%d transactions were saved, and %d nonces used", len(all), w.nonce())
	}
	for i, tx := range all {
		if tx.Nonce != uint64(i) || tx.Status != TxMined {
			w.Errorf("transaction %d has nonce %d and is %s", i, tx.Nonce, tx.Status)
		}
	}
}
