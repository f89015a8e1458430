package chaintest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Allowance is how much a Limited node allows; 0 means no limit.
type Allowance struct {
	Batch     int // calls in a batch; 1 refuses every list
	Range     int // blocks in a range of eth_getLogs
	PerSecond int // calls per second; each call in a batch counts
}

// Limited is a node that refuses requests above its allowance. The kind of refusal is drawn anew each time.
type Limited struct {
	URL string
	// BySize and ByRate count the refusals.
	BySize, ByRate int

	upstream http.Handler
	allows   Allowance
	now      func() time.Time

	mu     sync.Mutex
	random *rand.Rand
	second time.Time // start of the second in which calls are counted
	calls  int
}

// NewLimited starts a limited node in front of another one, which runs until the test
// ends.
func NewLimited(t testing.TB, upstream http.Handler, allows Allowance, now func() time.Time, seed uint64) *Limited {
	t.Helper()
	n := &Limited{upstream: upstream, allows: allows, now: now, random: rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // repeats a test by its seed
	listener := httptest.NewServer(n)
	t.Cleanup(func() {
		listener.CloseClientConnections()
		listener.Close()
	})
	n.URL = listener.URL
	return n
}

// ServeHTTP answers a request, or refuses it.
func (n *Limited) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	calls, list, err := readCalls(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if refuse := n.judge(r.Context(), calls, list); refuse != nil {
		refuse(w)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	n.upstream.ServeHTTP(w, r)
}

// judge returns how a request is refused, or nil.
func (n *Limited) judge(ctx context.Context, calls []call, list bool) func(http.ResponseWriter) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now := n.now(); now.Sub(n.second) >= time.Second {
		n.second, n.calls = now, 0
	}
	n.calls += len(calls)
	switch {
	case n.allows.PerSecond > 0 && n.calls > n.allows.PerSecond:
		n.calls -= len(calls)
		n.ByRate++
	case n.allows.Batch > 0 && len(calls) > n.allows.Batch, n.allows.Batch == 1 && list, n.hasLongRange(ctx, calls):
		n.BySize++
	default:
		return nil
	}
	return n.refusal(calls, list)
}

// hasLongRange reports whether any of the calls requests the logs of more blocks than allowed.
func (n *Limited) hasLongRange(ctx context.Context, calls []call) bool {
	ask := func(c call) answer { return askHandler(ctx, n.upstream, c) }
	return n.allows.Range > 0 && slices.ContainsFunc(calls, func(c call) bool {
		f, ok := rangeOf(c, ask)
		return ok && *f.ToBlock >= *f.FromBlock && uint64(*f.ToBlock)-uint64(*f.FromBlock) >= uint64(n.allows.Range)
	})
}

// refusal draws how to refuse calls.
func (n *Limited) refusal(calls []call, list bool) func(http.ResponseWriter) {
	statuses := []int{400, 403, 404, 408, 413, 418, 429, 451, 500, 502, 503, 504, 520}
	status := statuses[n.random.IntN(len(statuses))]
	words := n.words()
	failed := fmt.Sprintf(`"error":{"code":%d,"message":%q}`, -31_000-n.random.IntN(999), words)
	single := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, calls[0].ID, failed)
	all := single
	if list {
		var parts []string
		for _, c := range calls {
			parts = append(parts, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, c.ID, failed))
		}
		all = "[" + strings.Join(parts, ",") + "]"
	}
	answers := []struct {
		status int
		body   string
	}{
		{status, "<html><body>" + words + "</body></html>"}, {status, ""}, {status, single}, {status, all},
		{200, "<html><body>" + words + "</body></html>"}, {200, "null"}, {200, ""}, {200, single}, {200, all}, {200, "[]"}, {200, "{}"},
		{200, fmt.Sprintf(`{"error":%q}`, words)}, {500, fmt.Sprintf(`{"error":%q}`, words)}, {200, words},
	}
	if calls[0].Method == methodLogs && !list {
		answers = append(answers, struct {
			status int
			body   string
		}{200, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":null}`, calls[0].ID)})
	}
	pick := n.random.IntN(len(answers) + 1)
	if pick == len(answers) {
		return hangUp
	}
	a := answers[pick]
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(a.status)
		io.WriteString(w, a.body) //nolint:errcheck // the client may hang up
	}
}

// words draws the text of a node's error, which matches no known text.
func (n *Limited) words() string {
	var b strings.Builder
	for range 1 + n.random.IntN(6) {
		for range 2 + n.random.IntN(8) {
			b.WriteByte(byte('a' + n.random.IntN(26)))
		}
		b.WriteByte(' ')
	}
	return b.String()
}

// hangUp ends a connection without an answer.
func hangUp(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		conn.Close() //nolint:errcheck // only closing matters
	}
}
