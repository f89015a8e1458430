package txmgr

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// refusing is a node that answers a number of estimates, of one call or of all calls, with an error.
type refusing struct {
	Client
	err   error
	all   bool
	times int
}

func (r *refusing) CallContext(_ context.Context, _ any, _ string, args ...any) error {
	call := args[0].(map[string]any)
	if plain := len(call["data"].(hexutil.Bytes)) == 0; plain && !r.all || r.times == 0 {
		return nil
	}
	r.times--
	return r.err
}

// coded is an error answer with a code.
type coded struct {
	code int
	text string
}

func (c coded) Error() string  { return c.text }
func (c coded) ErrorCode() int { return c.code }

// TestRefusedCalls has a node refuse a call, all calls, or only once, with any code and text.
func TestRefusedCalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := words.Draw(t, "text")
		code := rapid.SampledFrom([]int{-32000, -32003, -32015, -32099, -32603, 3, 0, 1}).Draw(t, "code")
		answered := fmt.Errorf("eth_estimateGas: %w", coded{code, text})
		for _, test := range []struct {
			what string
			node refusing
			err  error
			want bool
		}{
			{"this call alone", refusing{err: answered, times: -1}, answered, true},
			{"everything", refusing{err: answered, times: -1, all: true}, answered, code == 3},
			{"once", refusing{err: answered}, answered, code == 3},
			{"the rate", refusing{err: coded{429, text}, times: -1}, coded{429, text}, false},
			{"the rate, as EIP-1474 has it", refusing{err: coded{-32005, text}, times: -1}, coded{-32005, text}, false},
			{"no answer", refusing{err: errors.New(text), times: -1}, errors.New(text), false},
			{"no answer afterwards", refusing{err: errors.New(text), times: -1}, answered, code == 3},
		} {
			n := node{&test.node}
			if got := n.refuses(context.Background(), invoice.Address{1}, common.Address{2}, []byte{1}, test.err); got != test.want {
				t.Errorf("%s: %d %q is taken for a refusal: %t", test.what, code, text, got)
			}
		}
	})
}

// words are texts of errors: any, and texts that have another meaning for nodes.
var words = rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
	"already known", "nonce too low: next nonce 5, tx nonce 4", "replacement transaction underpriced",
	"insufficient funds for gas * price + value", "execution reverted", "future transaction tries to replace pending",
}))

func TestStatusIsReadAsTheContractNumbersIt(t *testing.T) {
	w := onSQLite(t)
	ids := commitments(4)
	w.external(w.dev.Keys.Operator, pack("open", ids[1:2], 0))
	w.external(w.dev.Keys.Operator, pack("close", ids[3:4], 1<<62))
	terms := w.pay()
	w.seal(1)
	w.wantStatus(statusNone, ids[0])
	w.wantStatus(statusOpen, ids[1])
	w.wantStatus(statusPaid, terms)
	w.wantStatus(statusClosed, ids[3])
}

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
