package api_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/webhooks"
)

// large returns a backend with invoices, payments and events of nearly maximal size.
func large(n int) *backend {
	b := newListBackend(n)
	for i := range b.invoices {
		b.invoices[i].MerchantID = "acme"
		for range 100 {
			b.invoices[i].LineItems = append(b.invoices[i].LineItems, invoice.LineItem{Label: strings.Repeat("x", 200), Amount: invoice.NewAmount(1)})
		}
		b.events = append(b.events, webhooks.EventRow{
			Event: webhooks.Event{ID: fmt.Sprintf("evt_%026d", i), Type: invoice.EventTypes[0], MerchantID: "acme",
				Body: []byte(`{"id":"evt_` + fmt.Sprint(i) + `","data":{"x":"` + strings.Repeat("y", 40_000) + `"}}`), Seq: int64(i + 1)}, Status: webhooks.None,
		})
	}
	return b
}

// TestPagesEndAtMaxPageBytes pages through lists of large elements. No page exceeds
// MaxPageBytes, and together they have each element once.
func TestPagesEndAtMaxPageBytes(t *testing.T) {
	const n = 150
	b := large(n)
	h := api.New(api.Config{Ledger: b, Reader: b, Events: b, Now: testClock, Logger: slog.New(slog.DiscardHandler)}).Handler()
	for _, list := range []struct{ name, path, next string }{
		{"invoices", "/api/invoices?limit=200", "cursor"}, {"events", "/api/events?limit=200", "cursor"}, {"events", "/api/events?limit=200&after=start", "after"},
	} {
		seen, pages, more := make(map[string]bool), 0, ""
		for path := list.path; len(seen) < n; pages++ {
			w := do(h, "GET", path, "")
			if w.Code != http.StatusOK || w.Body.Len() > api.MaxPageBytes+1000 {
				t.Fatalf("%s: answered %d, %d bytes", path, w.Code, w.Body.Len())
			}
			var page map[string]json.RawMessage
			var elements []struct {
				ID    string
				Event struct{ ID string }
			}
			expect.OK(t, errors.Join(json.Unmarshal(w.Body.Bytes(), &page), json.Unmarshal(page[list.name], &elements)))
			for _, e := range elements {
				id := e.ID + e.Event.ID
				if seen[id] {
					t.Fatalf("%q comes twice", id)
				}
				seen[id] = true
			}
			more = ""
			if page["nextCursor"] != nil {
				expect.OK(t, json.Unmarshal(page["nextCursor"], &more))
			}
			if len(elements) == 0 || len(seen) < n && more == "" {
				t.Fatalf("%s: %d elements of %d, and the next cursor is %q", path, len(seen), n, more)
			}
			path, _, _ = strings.Cut(list.path, "&")
			path += "&" + list.next + "=" + more
		}
		if pages < 3 {
			t.Errorf("%s has %d pages", list.path, pages)
		}
		if list.next == "cursor" && more != "" {
			t.Errorf("%s: the last page has a cursor", list.path)
		}
	}
}

// TestListsAreShared reads as many lists at a time as one owner of keys may: half of all. Others read
// theirs, until all are in use.
func TestListsAreShared(t *testing.T) {
	t.Parallel()
	b := newListBackend(3)
	refused := make(map[string]int)
	a := api.New(api.Config{
		Ledger: b, Reader: b, Events: b, Now: testClock, Logger: slog.New(slog.DiscardHandler),
		Refused: func(limit string) { refused[limit]++ },
	})
	h := a.Handler() // of the operator
	taken, leave := a.OccupyPages("acme")
	if taken != api.MaxPages/2 {
		t.Errorf("an owner reads %d lists at a time, want %d", taken, api.MaxPages/2)
	}
	if w := do(h, "GET", "/api/invoices", ""); w.Code != http.StatusOK {
		t.Errorf("another owner is answered %d", w.Code)
	}
	own, leaveOwn := a.OccupyPages("")
	if own != api.MaxPages/4 {
		t.Errorf("the next one reads %d, want %d", own, api.MaxPages/4)
	}
	wantProblem(t, do(h, "GET", "/api/invoices", ""), http.StatusTooManyRequests, "rate_limited", "")
	leaveOwn()
	taken += fillPages(a)
	if taken != api.MaxPages {
		t.Fatalf("all others take up to %d", taken)
	}
	w := do(h, "GET", "/api/invoices", "")
	wantProblem(t, w, http.StatusServiceUnavailable, "unavailable", "")
	if w.Header().Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	if w := do(h, "GET", "/api/invoices/"+invoiceID(0), ""); w.Code != http.StatusOK {
		t.Errorf("a single invoice waits for the lists: %d", w.Code)
	}
	leave()
	if w := do(h, "GET", "/api/invoices", ""); w.Code != http.StatusOK {
		t.Errorf("after lists were read, another is answered %d", w.Code)
	}
	if refused["lists"] == 0 || refused["all_lists"] == 0 {
		t.Errorf("refused %v", refused)
	}
}

// fillPages takes all remaining slots of pages, for as many owners as necessary.
func fillPages(a *api.API) (n int) {
	for i := 0; ; i++ {
		taken, _ := a.OccupyPages(fmt.Sprint("merchant", i))
		if taken == 0 {
			return n
		}
		n += taken
	}
}

// TestFailedPageAbortsTheConnection fails in the middle of a page, which the client must not take for a complete one.
func TestFailedPageAbortsTheConnection(t *testing.T) {
	b, reads := large(50), 0
	b.wait = func(context.Context) error {
		if reads++; reads > 3 {
			return errors.New("no route to db-7.internal")
		}
		return nil
	}
	var log bytes.Buffer
	h := api.New(api.Config{Ledger: b, Reader: b, Events: b, Now: testClock, Logger: slog.New(slog.NewTextHandler(&log, nil))}).Handler()
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) {
			t.Errorf("recovered %v, want http.ErrAbortHandler", err)
		}
		if !strings.Contains(log.String(), "db-7") {
			t.Errorf("logged %q", log.String())
		}
	}()
	do(h, "GET", "/api/invoices?limit=200", "")
}

// TestCompression asks for large and small answers with and without compression.
func TestCompression(t *testing.T) {
	b, lists := newEventBackend(450), newListBackend(450)
	b.invoices, b.payments = lists.invoices, lists.payments
	h := newAPI(t, b)
	for _, test := range []struct {
		path, accept string
		compressed   bool
	}{
		{"/api/invoices", "", true},
		{"/api/invoices?limit=200", "", true},
		{"/api/events?limit=200", "", true}, // in several parts
		{"/api/invoices", "text/csv", true}, // in several parts
		{"/api/payments?merchantId=acme", "text/csv", true},
		{"/api/invoices?merchantId=nobody", "text/csv", false}, // only a header row
		{"/api/invoices?merchantId=nobody", "", false},
		{"/api/invoices?limit=0", "", false},
	} {
		plain := do(h, "GET", test.path, "", "Accept", test.accept)
		packed := do(h, "GET", test.path, "", "Accept", test.accept, "Accept-Encoding", "br, gzip")
		if got := packed.Header().Get("Content-Encoding") == "gzip"; got != test.compressed || plain.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s as %q: answers %v, and %v without compression", test.path, test.accept, packed.Header(), plain.Header())
			continue
		}
		for _, w := range []*httptest.ResponseRecorder{plain, packed} {
			if !slices.Contains(w.Header()["Vary"], "Accept-Encoding") || w.Code != plain.Code {
				t.Errorf("%s as %q: %d %v", test.path, test.accept, w.Code, w.Header())
			}
		}
		length, want := packed.Body.Len(), plain.Body.String()
		if got := unpacked(t, packed); got != want {
			t.Errorf("%s as %q: %d bytes, want %d", test.path, test.accept, len(got), len(want))
		}
		if test.compressed && length*4 > len(want) {
			t.Errorf("%s as %q: %d bytes of %d", test.path, test.accept, length, len(want))
		}
	}
}

// unpacked returns the body of an answer without its compression.
func unpacked(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	if w.Header().Get("Content-Encoding") == "" {
		return w.Body.String()
	}
	plain, err := gzip.NewReader(w.Body)
	expect.OK(t, err)
	text, err := io.ReadAll(plain)
	expect.OK(t, err)
	return string(text)
}
