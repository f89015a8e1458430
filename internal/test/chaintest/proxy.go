package chaintest

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// Proxy is a node that forwards calls to another node and changes the answers by its faults. Without faults it changes
// nothing.
//
// The effect of the faults depends only on the proxy's seed and the questions, so that a repeated run has the same
// faults.
type Proxy struct {
	// URL is its HTTP address. Subscriptions are not forwarded.
	URL string

	upstream http.Handler
	seed     uint64

	mu     sync.Mutex
	faults []Fault
	asked  map[string]uint64 // how often a question was asked, for Sometimes and WrongTime
}

// NewProxy starts a proxy in front of a node that runs until the test ends.
func NewProxy(t testing.TB, upstream http.Handler, seed uint64) *Proxy {
	t.Helper()
	p := &Proxy{upstream: upstream, seed: seed, asked: map[string]uint64{}}
	listener := httptest.NewServer(p)
	t.Cleanup(func() {
		listener.CloseClientConnections()
		listener.Close()
	})
	p.URL = listener.URL
	return p
}

// SetFaults replaces the proxy's faults. The first is nearest to the node.
func (p *Proxy) SetFaults(faults ...Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = slices.Clone(faults)
}

// call is a JSON-RPC call.
type call struct {
	Version string            `json:"jsonrpc"`
	ID      json.RawMessage   `json:"id"`
	Method  string            `json:"method"`
	Params  []json.RawMessage `json:"params"`
}

// answer is the answer to a call: an error or a result, which may be null.
type answer struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *refusal        `json:"error,omitempty"`
}

// refusal is a JSON-RPC error.
type refusal struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// exchange is a request with its answer, before a fault changes the answer on its way.
type exchange struct {
	ctx     context.Context
	w       http.ResponseWriter
	calls   []call
	batch   bool
	answers []answer
	body    []byte
}

type (
	callHandler func(call) answer
	responder   func(*exchange)
)

// ServeHTTP answers a request, as changed by the faults.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	question, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	p.mu.Lock()
	faults := p.faults
	p.mu.Unlock()
	x := &exchange{ctx: r.Context(), w: w}
	if len(faults) == 0 {
		x.body = p.forward(r.Context(), question)
		send(x)
		return
	}
	if x.calls, x.batch, err = readCalls(question); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ask := func(c call) answer { return p.ask(r.Context(), c) }
	deliver := send
	for _, f := range faults {
		ask, deliver = f.wrapCalls(p, ask), f.wrapResponse(p, deliver)
	}
	for _, c := range x.calls {
		a := ask(c)
		a.Version, a.ID = "2.0", c.ID
		x.answers = append(x.answers, a)
	}
	if x.body = marshal(x.answers); !x.batch {
		x.body = marshal(x.answers[0])
	}
	deliver(x)
}

// readCalls reads the body of a request: a call, or a list of them.
func readCalls(body []byte) (calls []call, batch bool, err error) {
	if batch = bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")); !batch {
		body = slices.Concat([]byte("["), body, []byte("]"))
	}
	err = json.Unmarshal(body, &calls)
	return calls, batch, err
}

// forward sends a request to the node.
func (p *Proxy) forward(ctx context.Context, question []byte) []byte {
	return forward(ctx, p.upstream, question)
}

// ask makes one call to the node.
func (p *Proxy) ask(ctx context.Context, c call) answer { return askHandler(ctx, p.upstream, c) }

// forward sends a request to a node.
func forward(ctx context.Context, node http.Handler, question []byte) []byte {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", bytes.NewReader(question))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	node.ServeHTTP(w, r)
	return w.Body.Bytes()
}

// askHandler makes one call to a node.
func askHandler(ctx context.Context, node http.Handler, c call) answer {
	c.Version, c.ID = "2.0", json.RawMessage("1")
	var a answer
	if body := forward(ctx, node, marshal(c)); json.Unmarshal(body, &a) != nil {
		a.Error = &refusal{Code: -32603, Message: fmt.Sprintf("the node behind the proxy answered %q", body)}
	}
	return a
}

// send sends the response unchanged.
func send(x *exchange) {
	x.w.Header().Set("Content-Type", "application/json")
	x.w.Write(x.body) //nolint:errcheck // a client that has gone needs no answer
}

// marshal encodes a value that can always be encoded.
func marshal(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("chaintest: %v", err))
	}
	return text
}

// draw returns a number below 100 that follows from the seed and the words.
func (p *Proxy) draw(words ...any) uint64 {
	h := fnv.New64a()
	h.Write(binary.BigEndian.AppendUint64(nil, p.seed))
	fmt.Fprintln(h, words...)
	return h.Sum64() >> 8 % 100
}

// happens reports whether a fault with a percentage applies to this call.
func (p *Proxy) happens(percent uint64, question string) bool {
	return p.draw(question, p.count(question)) < percent
}

// count returns how often a question was asked, with this time.
func (p *Proxy) count(question string) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[question]++
	return p.asked[question]
}

// question returns the method and the parameters of a call.
func (c call) question() string { return fmt.Sprintf("%s%s", c.Method, c.Params) }
