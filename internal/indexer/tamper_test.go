package indexer

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/quittance/quittance/internal/test/expect"
)

// question is a JSON-RPC call that is forwarded to a node.
type question struct {
	Version string            `json:"jsonrpc"`
	ID      json.RawMessage   `json:"id"`
	Method  string            `json:"method"`
	Params  []json.RawMessage `json:"params"`
}

// tamperingProxy is a proxy of a node with a function that answers instead of the node. The function may ask the node.
// tamperingProxy returns the proxy's URL.
func tamperingProxy(t *testing.T, node http.Handler, answer func(q question, ask func(question) any) any) string {
	t.Helper()
	ask := func(q question) any {
		body, err := json.Marshal(q)
		if err != nil {
			t.Error(err)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		node.ServeHTTP(w, r)
		var reply struct{ Result any }
		expect.NoError(t, json.Unmarshal(w.Body.Bytes(), &reply))
		return reply.Result
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client is gone
		}
		reply := func(q question) map[string]any {
			a := map[string]any{"jsonrpc": "2.0", "id": q.ID}
			result := answer(q, ask)
			if err, ok := result.(error); ok {
				a["error"] = map[string]any{"code": -32000, "message": err.Error()}
			} else {
				a["result"] = result
			}
			return a
		}
		var q question
		var batch []question
		var answers any
		if json.Unmarshal(body, &q) == nil {
			answers = reply(q)
		} else if err := json.Unmarshal(body, &batch); err == nil {
			var all []any
			for _, q := range batch {
				all = append(all, reply(q))
			}
			answers = all
		}
		w.Header().Set("Content-Type", "application/json")
		if json.NewEncoder(w).Encode(answers) != nil {
			return // the client is gone
		}
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// each calls change for every object in an answer.
func each(answer any, change func(o map[string]any)) any {
	switch v := answer.(type) {
	case []any:
		for _, e := range v {
			each(e, change)
		}
	case map[string]any:
		for _, e := range v {
			each(e, change)
		}
		change(v)
	}
	return answer
}

// flip changes a hash in an object, if it is there.
func flip(o map[string]any, member string) {
	if hash, ok := o[member].(string); ok && len(hash) == 66 {
		o[member] = "0xff" + hash[4:]
	}
}

// parse reads a number as JSON-RPC has it.
func parse(t *testing.T, s string) uint64 {
	t.Helper()
	n, err := hexutil.DecodeUint64(s)
	if err != nil {
		t.Error(err)
	}
	return n
}
