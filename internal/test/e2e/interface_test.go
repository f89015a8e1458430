package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// quiet is a block time so long that no block is sealed during a test.
const quiet = "10m"

// answer is a response.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// do sends a request; headers are pairs of a name and a value.
func (w *world) do(method, path, body string, headers ...string) answer {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), method, w.url(path), strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	got, err := w.http.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	text, err := io.ReadAll(got.Body)
	if err := errors.Join(err, got.Body.Close()); err != nil {
		w.Fatal(err)
	}
	return answer{got.StatusCode, got.Header, text}
}

// post posts a body to create an invoice.
func (w *world) post(body string, headers ...string) answer {
	w.Helper()
	return w.do(http.MethodPost, "/api/invoices", body, append([]string{"Content-Type", "application/json"}, headers...)...)
}

// decoded decodes a response, which must have a status.
func decoded[T any](tb testing.TB, a answer, status int) (v T) {
	tb.Helper()
	if a.status != status {
		tb.Fatalf("answered %d, want %d: %s", a.status, status, a.body)
	}
	if err := json.Unmarshal(a.body, &v); err != nil {
		tb.Fatalf("%v: %s", err, a.body)
	}
	return v
}

// members returns the members of a valid create request, as JSON texts.
func (w *world) members() map[string]string {
	info := w.info.Load()
	return map[string]string{
		"merchantId": `"acme"`, "merchantAddress": `"` + info.Merchant.Address + `"`, "amount": `"4900000"`,
		"currency": `"USDC"`, "chainKey": `"local"`, "expiresAt": fmt.Sprint(time.Now().Unix() + 3600),
		"lineItems": `[{"label":"Two espressos","amount":"4000000"},{"label":"Tip","amount":"900000"}]`,
	}
}

// body returns a create request with changes: pairs of a member's name and its JSON text,
// which is empty to leave the member out.
func (w *world) body(changes ...string) string {
	all := w.members()
	for i := 0; i < len(changes); i += 2 {
		all[changes[i]] = changes[i+1]
	}
	var parts []string
	for name, text := range all {
		if text != "" {
			parts = append(parts, fmt.Sprintf("%q:%s", name, text))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}
