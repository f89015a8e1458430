package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/internal/clock"
)

// node serves a chain over JSON-RPC, with the faults of its plan.
type node struct {
	name    string
	address string
	chain   *evmChain
	plan    *plan
	log     *trace
	limits  struct {
		batch      int
		blockRange uint64
		perSecond  int
		lists      bool // it takes no list of calls, not even of one
		null       bool // it answers null for a range that is too wide
		refusal    int  // the status with which it refuses a list
	}

	mu      sync.Mutex
	own     map[int]*blockView // what it had when a fault began, with what it has made up since
	invent  func(on *block) []*types.Transaction
	earlier map[string]any // its first answer to each request
	second  int64          // the second in which calls were made
	calls   int
}

// view returns the blocks that the node has.
func (n *node) view(e effect) blockView {
	now := n.chain.tagged()
	switch head := now.blocks[len(now.blocks)-1]; {
	case e.far:
		h := types.CopyHeader(head.header)
		h.Number.Add(h.Number, big.NewInt(1_000_000))
		now.blocks = append(slices.Clip(now.blocks), &block{header: h, hash: h.Hash(), number: h.Number.Uint64(), state: head.state, seq: head.seq})
	case e.behind > 0:
		now.blocks = now.blocks[:max(2, len(now.blocks)-e.behind)] // block 1 has the contracts
		now.tag = min(now.tag, uint64(len(now.blocks)-1))
	}
	if !e.frozen && !e.forked {
		return now
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	own := n.own[e.id]
	if own == nil {
		own = &blockView{slices.Clone(now.blocks), now.tag}
		n.own[e.id] = own
	}
	for e.forked && len(own.blocks) < len(now.blocks) {
		own.blocks = n.chain.mineBranch(own.blocks, time.Now(), n.invent(own.blocks[len(own.blocks)-1]))
	}
	if e.forked { // a node that only has an old state calls none of its blocks safe later
		own.tag = now.tag
	}
	return *own
}

// ServeHTTP answers a request of one call or of a batch.
func (n *node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	batch := len(raw) > 0 && raw[0] == '['
	calls := make([]rpcCall, 1)
	if batch {
		err = json.Unmarshal(raw, &calls)
	} else {
		err = json.Unmarshal(raw, &calls[0])
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	methods := make([]string, len(calls))
	for i := range calls {
		methods[i] = calls[i].Method
	}
	e := n.plan.meet(n.name, methods...)
	if !n.enter(r.Context(), e, methods) {
		panic(http.ErrAbortHandler)
	}
	if refused := n.refuse(batch, len(calls)); refused != 0 {
		http.Error(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"limit exceeded"}}`, refused)
		return
	}
	answers := n.answers(calls, e)
	if e.twice {
		answers = n.answers(calls, e)
	}
	var out []byte
	if batch {
		if e.partial > 0 && e.only == "" {
			answers = leaveOut(e.dice, answers, e.partial/2).([]rpcCall)
		}
		out, err = json.Marshal(answers)
	} else {
		out, err = json.Marshal(answers[0])
	}
	if err != nil {
		panic(err)
	}
	if n.log != nil {
		n.log.say(n.name, "%s %s", describe(calls, answers), hitsOf(e))
	}
	w.Header().Set("Content-Type", "application/json")
	e.reply(w, http.StatusOK, out)
}

func hitsOf(e effect) string {
	if len(e.hits) == 0 {
		return ""
	}
	return fmt.Sprintf("[faults %v]", e.hits)
}

// describe returns a line about calls.
func describe(calls, answers []rpcCall) string {
	var all []string
	for i, c := range calls {
		text := strings.TrimPrefix(c.Method, "eth_")
		if len(c.Params) > 0 {
			text += " " + shorten(string(c.Params[0]), 70)
		}
		if i < len(answers) {
			raw, _ := json.Marshal(answers[i].Result)
			if answers[i].Error != nil {
				raw = []byte("error " + answers[i].Error.Message)
			}
			text += " -> " + shorten(string(raw), 60)
		}
		if all = append(all, text); len(all) > 3 {
			all = append(all, fmt.Sprintf("%d more", len(calls)-i-1))
			break
		}
	}
	return strings.Join(all, "; ")
}

func shorten(s string, n int) string {
	if len(s) > n {
		return s[:n] + "…"
	}
	return s
}

// latency is how long a request takes without faults.
const latency = 3 * time.Millisecond

// enter waits as long as a request takes. It returns false if the request is lost.
func (n *node) enter(ctx context.Context, e effect, methods []string) bool {
	ok := clock.Sleep(ctx, latency+e.delay, nil) && !e.request
	if !ok && n.log != nil {
		n.log.say(n.name, "%s lost %s", strings.Join(methods, ","), hitsOf(e))
	}
	return ok
}

// refuse returns the status for a request that is over a limit, or 0.
func (n *node) refuse(list bool, calls int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now := time.Now().Unix(); now != n.second {
		n.second, n.calls = now, 0
	}
	n.calls += calls
	switch {
	case n.limits.perSecond > 0 && n.calls > n.limits.perSecond:
		return http.StatusTooManyRequests
	case n.limits.lists && list, n.limits.batch > 0 && calls > n.limits.batch:
		return n.limits.refusal
	}
	return 0
}

// answers answers calls, as a fault wants it.
func (n *node) answers(calls []rpcCall, e effect) []rpcCall {
	all := make([]rpcCall, len(calls))
	view := n.view(e)
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, c := range calls {
		a := n.answer(view, c)
		if e.partial > 0 && a.Error == nil && (e.only == "" || strings.Contains(e.only, c.Method)) {
			a.Result = leaveOut(e.dice, a.Result, e.partial)
		}
		if raw, ok := a.Result.(json.RawMessage); ok && e.ahead != 0 && strings.HasPrefix(c.Method, "eth_getBlockBy") {
			a.Result = e.withOtherTime(raw)
		}
		key := fmt.Sprintf("%s %s", c.Method, c.Params)
		if earlier, ok := n.earlier[key]; ok && e.stale {
			a.Result, a.Error = earlier, nil
		} else if a.Error == nil && !ok && c.Method != "eth_sendRawTransaction" {
			n.earlier[key] = a.Result
		}
		all[i] = a
	}
	return all
}

// withOtherTime returns a block with another time, if it is one of the half that the fault changes.
func (e effect) withOtherTime(raw json.RawMessage) json.RawMessage {
	var block map[string]any
	if err := json.Unmarshal(raw, &block); err != nil {
		panic(err)
	}
	at, _ := block["timestamp"].(string)
	seconds, err := hexutil.DecodeUint64(at)
	if err != nil {
		panic(err)
	}
	if hashOf(block["hash"], e.salt)%2 == 0 {
		return raw
	}
	block["timestamp"] = hexutil.Uint64(int64(seconds) + e.ahead)
	changed, err := json.Marshal(block)
	if err != nil {
		panic(err)
	}
	return changed
}

// leaveOut returns a list without a part of its members. Other values stay.
func leaveOut(dice *rand.Rand, value any, part float64) any {
	v := reflect.ValueOf(value)
	if !v.IsValid() || v.Kind() != reflect.Slice || v.Type().Elem().Kind() == reflect.Uint8 {
		return value
	}
	kept := reflect.MakeSlice(v.Type(), 0, v.Len())
	for i := range v.Len() {
		if dice.Float64() >= part {
			kept = reflect.Append(kept, v.Index(i))
		}
	}
	return kept.Interface()
}

// reply sends an answer, or what a fault makes of it.
func (e effect) reply(w http.ResponseWriter, status int, out []byte) {
	if e.answer {
		panic(http.ErrAbortHandler)
	}
	if e.status > 0 {
		status = e.status
	}
	switch e.body {
	case noBody:
		out = nil
	case htmlBody:
		w.Header().Set("Content-Type", "text/html")
		out = []byte("<html><body><h1>502 Bad Gateway</h1></body></html>")
	case errorBody:
		out = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":"out of order"}}`, -32000-e.dice.IntN(100))
	case noiseBody:
		out = make([]byte, e.dice.IntN(300))
		for i := range out {
			out[i] = byte(e.dice.Uint32())
		}
	case hugeBody:
		out = bytes.Repeat([]byte("large "), 300_000)
	case cutBody:
		w.Header().Set("Content-Length", fmt.Sprint(len(out)))
		out = out[:len(out)/2]
	case ownBody, bodies:
	}
	if status >= 300 && status < 400 {
		w.Header().Set("Location", "http://127.0.9.9/")
	}
	w.WriteHeader(status)
	_, _ = w.Write(out)
	if e.body == cutBody {
		panic(http.ErrAbortHandler)
	}
}

// withheld is how a transaction is not returned, nor its receipt.
type withheld struct {
	by   string // a node; empty for all
	logs bool   // its logs are left out, too
}

// hide makes nodes not return a transaction, for a time unless that is 0.
func (c *evmChain) hide(tx common.Hash, how withheld, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hidden[tx] = how; d > 0 {
		time.AfterFunc(d, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.hidden, tx)
		})
	}
}

// hides reports whether nodes still do not return a transaction.
func (c *evmChain) hides() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.hidden) > 0
}

// isHidden reports whether the node does not return a transaction, or its logs.
func (n *node) isHidden(tx common.Hash, logs bool) bool {
	n.chain.mu.Lock()
	defer n.chain.mu.Unlock()
	how, is := n.chain.hidden[tx]
	return is && (how.by == "" || how.by == n.name) && (how.logs || !logs)
}

// withhold sometimes makes the dishonest node of the chain not return a transaction or its logs for a while, or all its
// nodes not return the transaction.
func (c *worldChain) withhold(r *rand.Rand, tx common.Hash) {
	if how := (withheld{c.dishonest, c.dishonest != ""}); r.IntN(3) == 0 && !c.omits && (how.logs || c.quorum == 1) {
		c.hide(tx, how, time.Duration(1+r.Int64N(int64(2*time.Minute))))
	}
}
