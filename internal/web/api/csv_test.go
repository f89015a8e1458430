package api_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/api"
)

// exported requests a list as CSV, and returns its records.
func exported(t *testing.T, h http.Handler, path string) ([][]string, *httptest.ResponseRecorder) {
	t.Helper()
	w := do(h, "GET", path, "", "Accept", "text/csv")
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	if strings.Count(w.Body.String(), "\n") != strings.Count(w.Body.String(), "\r\n") {
		t.Errorf("%s: lines do not end in CRLF", path)
	}
	records, err := csv.NewReader(w.Body).ReadAll()
	expect.OK(t, err)
	return records, w
}

// TestExports compares exports of more rows than are read at once with the lists.
func TestExports(t *testing.T) {
	b := newEventBackend(450)
	lists := newListBackend(450)
	b.invoices, b.payments = lists.invoices, lists.payments
	h := newAPI(t, b)
	for path, ids := range map[string][]string{
		"/api/invoices": nil, "/api/invoices?status=paid": nil, "/api/payments?include=pending,unattributed": nil, "/api/payments": nil,
		"/api/events": nil, "/api/events?after=start": nil, "/api/invoices?merchantId=no%00body": nil,
	} {
		name := strings.Split(strings.TrimPrefix(path, "/api/"), "?")[0]
		for cursor := ""; ; {
			list := decode[map[string]any](t, do(h, "GET", withQuery(path, "limit=200"+cursor), ""), http.StatusOK)
			elements := list[name].([]any)
			for _, e := range elements {
				element := e.(map[string]any)
				if event, ok := element["event"].(map[string]any); ok {
					element = event
				}
				ids = append(ids, element["id"].(string))
			}
			next, more := list["nextCursor"].(string)
			if !more || len(elements) == 0 {
				break
			}
			cursor = "&cursor=" + next
			if strings.Contains(path, "after") {
				path, cursor = "/api/events?after="+next, ""
			}
		}
		if strings.Contains(path, "after") {
			path = "/api/events?after=start"
		}
		records, w := exported(t, h, path)
		var got []string
		for _, row := range records[1:] {
			got = append(got, row[0])
		}
		if diff := cmp.Diff(ids, got); diff != "" || records[0][0] != "id" {
			t.Errorf("%s (-list +export):\n%s", path, diff)
		}
		header := w.Header()
		if header.Get("Content-Type") != "text/csv; charset=utf-8; header=present" || !strings.HasPrefix(header.Get("Content-Disposition"), `attachment; filename="`+name+"-2025") {
			t.Errorf("%s: headers %v", path, header)
		}
	}
}

// TestExportForSpreadsheets exports each list in the form that spreadsheets of other languages read.
func TestExportForSpreadsheets(t *testing.T) {
	b := newEventBackend(3)
	b.invoices = []invoice.Invoice{{
		ID: invoiceID(1), MerchantID: "acme", ChainKey: "base", Currency: "USDC", Terms: invoice.Terms{Amount: invoice.NewAmount(4_900_123)},
		Details: invoice.Details{Description: "Zoë; 1.5 kg"}, CreatedAt: invoice.Unix(now),
	}}
	b.payments = []ledger.PaymentRow{{SeenID: number(1), Payment: invoice.Payment{ID: "pay_1", InvoiceID: invoiceID(1), Status: invoice.Confirmed}}}
	b.refunds = []invoice.RefundRecord{{ID: "ref_1", InvoiceID: invoiceID(1), PaymentID: "pay_1"}}
	h := newAPI(t, b)
	const form = "bom=1&separator=semicolon&decimal=comma"
	for _, path := range []string{
		"/api/invoices", "/api/payments", "/api/refunds", "/api/events",
		"/api/invoices/" + invoiceID(1) + "/payments", "/api/payments/pay_1/refunds",
	} {
		plain, _ := exported(t, h, path)
		w := do(h, "GET", withQuery(path, form), "", "Accept", "text/csv")
		text, marked := strings.CutPrefix(w.Body.String(), "\ufeff")
		reader := csv.NewReader(strings.NewReader(text))
		reader.Comma = ';'
		records, err := reader.ReadAll()
		if w.Code != http.StatusOK || !marked || err != nil || len(records) != len(plain) {
			t.Fatalf("%s: %d, %v\n%s", path, w.Code, err, w.Body)
		}
		for i, row := range plain {
			for j, cell := range row {
				if i > 0 && strings.HasSuffix(plain[0][j], "Decimal") {
					cell = strings.Replace(cell, ".", ",", 1)
				}
				if records[i][j] != cell {
					t.Errorf("%s: %s is %q, want %q", path, plain[0][j], records[i][j], cell)
				}
			}
		}
		for _, name := range []string{"bom=1", "separator=semicolon", "decimal=comma"} {
			parameter, _, _ := strings.Cut(name, "=")
			wantProblem(t, do(h, "GET", withQuery(path, name), ""), http.StatusBadRequest, "invalid_field", parameter)
			wantProblem(t, do(h, "GET", withQuery(path, parameter+"=x"), "", "Accept", "text/csv"), http.StatusBadRequest, "invalid_field", parameter)
		}
	}
	if got := do(h, "GET", "/api/invoices?"+form, "", "Accept", "text/csv").Body.String(); !strings.Contains(got, ";4900123;4,900123;") || !strings.Contains(got, `;"Zoë; 1.5 kg";`) {
		t.Errorf("invoices are\n%s", got)
	}
}

// withQuery adds parameters to a path.
func withQuery(path, query string) string {
	if strings.Contains(path, "?") {
		return path + "&" + query
	}
	return path + "?" + query
}

// cellsOf exports a list, and returns the cells of its first row by column.
func cellsOf(t *testing.T, b *backend, path string) map[string]string {
	t.Helper()
	records, _ := exported(t, newAPI(t, b), path)
	cells := make(map[string]string)
	for i, name := range records[0] {
		cells[name] = records[1][i]
	}
	return cells
}

// TestExportedDetails exports the details that a merchant gave an invoice, and the reference with its
// payments and refunds.
func TestExportedDetails(t *testing.T) {
	metadata := map[string]string{"b": "x;=1+1\t=2\n=3", "a<&>": "\"é"}
	b := &backend{
		invoices: []invoice.Invoice{{ID: invoiceID(1), MerchantID: "acme", Collection: invoice.Deposit, Details: invoice.Details{
			Reference: "-order;@10017", Description: "Tea, 500 g", Customer: invoice.Customer{ID: "cus_1", Email: "a@b.example"}, Metadata: metadata,
		}, DepositAddress: invoice.Address{0xda}, SweptTx: invoice.Hash{0x5e}}},
		payments: []ledger.PaymentRow{{SeenID: number(1), Payment: invoice.Payment{ID: "pay_1", InvoiceID: invoiceID(1), Status: invoice.Confirmed}}},
		refunds:  []invoice.RefundRecord{{ID: "ref_1", InvoiceID: invoiceID(1), PaymentID: "pay_1"}},
	}
	got := cellsOf(t, b, "/api/invoices")
	for column, want := range map[string]string{
		"reference": "'-order;'@10017", "description": "Tea, 500 g", "customerId": "cus_1", "customerEmail": "a@b.example",
		"metadata":       `{"a<&>":"\"é","b":"x\u003b=1+1\t=2\n=3"}`,
		"depositAddress": "0xDA00000000000000000000000000000000000000", "sweptTxHash": "0x5e" + strings.Repeat("0", 62),
	} {
		if got[column] != want {
			t.Errorf("%s is %q, want %q", column, got[column], want)
		}
	}
	var pairs map[string]string
	if err := json.Unmarshal([]byte(got["metadata"]), &pairs); err != nil || !maps.Equal(pairs, metadata) {
		t.Errorf("the metadata is %v (%v), want %v", pairs, err, metadata)
	}
	for _, path := range []string{"/api/payments", "/api/invoices/" + invoiceID(1) + "/payments", "/api/refunds", "/api/payments/pay_1/refunds"} {
		if got := cellsOf(t, b, path); got["reference"] != "'-order;'@10017" {
			t.Errorf("%s: the reference is %q", path, got["reference"])
		}
	}
}

// TestExportedPaymentsOfInvoice exports the payments of one invoice. One of them is pending.
func TestExportedPaymentsOfInvoice(t *testing.T) {
	b := newListBackend(8)
	b.payments[0].InvoiceID = invoiceID(3)
	records, _ := exported(t, newAPI(t, b), "/api/invoices/"+invoiceID(3)+"/payments?timezone=Europe/Berlin")
	var got [][]string
	for _, row := range records {
		got = append(got, row[:3])
	}
	want := [][]string{
		{"id", "status", "invoiceId"}, {"pay_" + number(3), "pending", invoiceID(3)}, {"pay_" + number(0), "confirmed", invoiceID(3)},
	}
	expect.NoDiff(t, cmp.Diff(want, got), "")
}

// TestExportedCells reads one payment with all figures, in a time zone.
func TestExportedCells(t *testing.T) {
	b := &backend{payments: []ledger.PaymentRow{{SeenID: number(1), Payment: invoice.Payment{
		ID: "pay_1", InvoiceID: invoiceID(1), MerchantID: "-2+3", Method: invoice.ByCalldata, Status: invoice.Confirmed, ConfirmedAt: time.Unix(now, 0),
		Transfer: invoice.Transfer{ChainKey: "base", Currency: "USDC", Amount: invoice.MaxAmount, Position: invoice.Position{BlockNumber: 7}},
	}}}, refunded: map[string]invoice.Amount{"pay_1": invoice.NewAmount(1_500_000)}}
	got := cellsOf(t, b, "/api/payments?timezone=Asia/Kathmandu")
	zero := "0x0000000000000000000000000000000000000000"
	want := map[string]string{
		"id": "pay_1", "status": "confirmed", "invoiceId": invoiceID(1), "merchantId": "'-2+3", "chainKey": "base", "txHash": "0x" + strings.Repeat("0", 64), "currency": "USDC",
		"amount":         "115792089237316195423570985008687907853269984665640564039457584007913129639935",
		"amountDecimal":  "115792089237316195423570985008687907853269984665640564039457584007913129.639935",
		"amountRefunded": "1500000", "amountRefundedDecimal": "1.50", "from": zero, "to": zero, "blockNumber": "7",
		"confirmedAt": "2025-11-24T21:45:00+05:45", "attribution": "calldata", "reference": "",
	}
	expect.NoDiff(t, cmp.Diff(want, got), "")
}

// TestFormulasAreEscaped writes formulas at every place where a spreadsheet may find one.
func TestFormulasAreEscaped(t *testing.T) {
	for cell, want := range map[string]string{
		"": "", "a": "a", "1": "1", "=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "'=1": "'=1",
		"\tx": "'\tx", "\t=1": "'\t'=1", "\r=1": "'\r'=1", "\n=1": "'\n'=1", "\r\n\t=1": "'\r\n\t'=1",
		"＝1+1": "'＝1+1", "＋1": "'＋1", "－1": "'－1", "＠SUM(A1)": "'＠SUM(A1)", "é=1": "é=1",
		"a;=1+1": "a;'=1+1", "a;b": "a;b", "a=1;b": "a=1;b", "a;＝1;-2;": "a;'＝1;'-2;", "a\t=1": "a\t'=1", "a\r\n@b": "a\r\n'@b", "a\n b": "a\n b",
		" =1": "' =1", "\u00a0+1": "'\u00a0+1", "\u200b=1": "'\u200b=1", `"=1`: `'"=1`, `a; ""=1`: `a;' ""=1`, ";": ";", "; ": "; ", "a, -1": "a, -1",
	} {
		if got := api.Harmless(cell); got != want {
			t.Errorf("%q became %q, want %q", cell, got, want)
		}
	}
}

// TestFormulasBehindCommas reads files with semicolons as a spreadsheet does that divides cells at commas. The cells that
// would be quoted in a file with commas are not.
func TestFormulasBehindCommas(t *testing.T) {
	b := &backend{invoices: []invoice.Invoice{{
		ID: invoiceID(1), MerchantID: "acme", ChainKey: "base", Currency: "USDC", Terms: invoice.Terms{Amount: invoice.NewAmount(1)},
		Details: invoice.Details{Description: "Tea,=cmd|' /C calc'!A0,x", Reference: "a, @b"}, CreatedAt: invoice.Unix(now),
	}}}
	reader := csv.NewReader(do(newAPI(t, b), "GET", "/api/invoices?separator=semicolon", "", "Accept", "text/csv").Body)
	reader.FieldsPerRecord, reader.LazyQuotes = -1, true
	records, err := reader.ReadAll()
	expect.OK(t, err)
	if cells := slices.Concat(records...); !slices.Contains(cells, "'=cmd|' /C calc'!A0") || slices.ContainsFunc(cells, func(cell string) bool { return api.Harmless(cell) != cell }) {
		t.Errorf("the cells are %q", cells)
	}
}

// TestAccept asks for lists with headers Accept.
func TestAccept(t *testing.T) {
	h := newAPI(t, newListBackend(1))
	for accept, wanted := range map[string]bool{
		"": false, "*/*": false, "application/json": false, "text/csv": true, "TEXT/CSV": true, "text/*": true, "text/csv;header=present": true,
		"text/csv, */*;q=0.1": true, "text/csv, application/json": false, "text/csv;q=0.9, application/json": false, "text/csv, application/json;q=0.9": true,
		"text/csv;q=0.001, application/json;q=0": true, "text/csv;q=0": false, "text/csv; Q=1.000": true, "text/csv;q=1.001": false, "text/csv;q=2": false,
		"text/csv;q=": false, "text/csv;q=0.1234": false, "text/csv;q=.5": false, "text/html, text/*;q=0.1": true, "text/*, text/csv;q=0": false, ";,;": false,
	} {
		w := do(h, "GET", "/api/invoices", "", "Accept", accept)
		if got := strings.HasPrefix(w.Header().Get("Content-Type"), "text/csv"); got != wanted || w.Header().Get("Vary") != "Accept" {
			t.Errorf("Accept: %s answers %v", accept, w.Header())
		}
	}
}

func TestExportsRefuseParameters(t *testing.T) {
	h := newAPI(t, newListBackend(1))
	for query, field := range map[string]string{"limit=10": "limit", "timezone=Mars": "timezone", "merchantid=acme": "merchantid"} {
		wantProblem(t, do(h, "GET", "/api/invoices?"+query, "", "Accept", "text/csv"), http.StatusBadRequest, "invalid_field", field)
	}
	wantProblem(t, do(h, "GET", "/api/invoices?timezone=UTC", ""), http.StatusBadRequest, "invalid_field", "timezone")
	wantProblem(t, do(h, "GET", "/api/keys?timezone=UTC", "", "Accept", "text/csv"), http.StatusBadRequest, "invalid_field", "timezone")
}

// failing is a backend on which listing invoices fails after some reads.
type failing struct {
	*backend
	reads int
}

func (f *failing) Invoices(ctx context.Context, filter ledger.InvoiceFilter) ([]invoice.Invoice, string, error) {
	if f.reads--; f.reads < 0 {
		return nil, "", errors.New("the database is away")
	}
	return f.backend.Invoices(ctx, filter)
}

// TestBrokenExports checks exports with a read that fails, at first and in the middle. The client sees
// that the export is incomplete.
func TestBrokenExports(t *testing.T) {
	base, _ := chain.Lookup("base")
	for reads, status := range map[int]int{0: http.StatusInternalServerError, 20: http.StatusOK, 31: http.StatusOK} {
		b := newListBackend(6000)
		a := api.New(api.Config{Reader: &failing{b, reads}, Events: b, Chains: []chain.Chain{base}, Now: testClock, Logger: slog.New(slog.DiscardHandler)})
		server := httptest.NewServer(a.Handler())
		r := expect.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/invoices", nil))
		r.Header.Set("Accept", "text/csv")
		response, err := server.Client().Do(r)
		expect.OK(t, err)
		body, err := io.ReadAll(response.Body)
		whole := reads == 31
		if response.StatusCode != status || (err == nil) != (whole || status >= 400) {
			t.Errorf("after %d reads: %s, %d bytes, %v", reads, response.Status, len(body), err)
		}
		if rows := response.Trailer.Get("Quittance-Rows"); whole && (rows != "6000" || bytes.Count(body, []byte("\r\n")) != 6001) || !whole && rows != "" {
			t.Errorf("after %d reads: %d rows, the trailer says %q", reads, bytes.Count(body, []byte("\r\n")), rows)
		}
		expect.NoError(t, response.Body.Close())
		server.Close()
	}
}

// stopping is a backend that stops each read of invoices after one row, as it does with filters that few rows match.
type stopping struct{ *backend }

func (s stopping) Invoices(ctx context.Context, filter ledger.InvoiceFilter) ([]invoice.Invoice, string, error) {
	filter.Limit = 2
	found, _, err := s.backend.Invoices(ctx, filter)
	if err != nil || len(found) < 2 {
		return found, "", err
	}
	return found[:1], found[1].ID, nil // the second was examined and does not match
}

// TestExportsContinue checks exports with reads that stop early.
func TestExportsContinue(t *testing.T) {
	b := newListBackend(41)
	a := api.New(api.Config{Reader: stopping{b}, Events: b, Now: testClock, Logger: slog.New(slog.DiscardHandler)})
	if records, _ := exported(t, a.Handler(), "/api/invoices"); len(records) != 1+21 {
		t.Errorf("the export has %d lines, want 22", len(records))
	}
}

// TestExportsBegin reads the first line of an export before the service has read all of it.
func TestExportsBegin(t *testing.T) {
	for _, coding := range []string{"identity", "gzip"} {
		b := newListBackend(300)
		second := make(chan struct{})
		b.wait = func(ctx context.Context) error {
			if b.invoiceFilter.Before != "" { // it is the second read
				select {
				case <-second:
				case <-ctx.Done(): // which the service ends
					return ctx.Err()
				}
			}
			return nil
		}
		a := api.New(api.Config{Reader: b, Events: b, Now: testClock, Logger: slog.New(slog.DiscardHandler)})
		server := httptest.NewServer(a.Handler())
		r := expect.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/invoices", nil))
		r.Header.Set("Accept", "text/csv")
		r.Header.Set("Accept-Encoding", coding)
		response, err := server.Client().Do(r)
		expect.OK(t, err)
		body := response.Body
		if coding == "gzip" {
			if body, err = gzip.NewReader(response.Body); err != nil {
				t.Fatal(err)
			}
		}
		lines := bufio.NewReader(body)
		if line, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(line, "id,") {
			t.Errorf("%s: the first line is %q, %v", coding, line, err)
		}
		close(second)
		if rest, err := io.ReadAll(lines); err != nil || bytes.Count(rest, []byte("\r\n")) != 300 {
			t.Errorf("%s: %d rows, %v", coding, bytes.Count(rest, []byte("\r\n")), err)
		}
		expect.NoError(t, response.Body.Close())
		server.Close()
	}
}

// TestExportsAreBounded checks that an owner can make only so many exports at a time.
func TestExportsAreBounded(t *testing.T) {
	entered, leave := make(chan struct{}, 100), make(chan struct{})
	b := newListBackend(1)
	b.wait = func(context.Context) error {
		entered <- struct{}{}
		<-leave
		return nil
	}
	h := newAPI(t, b)
	done := make(chan int)
	for range api.MaxOwnExports {
		go func() { done <- do(h, "GET", "/api/invoices", "", "Accept", "text/csv").Code }()
		<-entered
	}
	wantProblem(t, do(h, "GET", "/api/invoices", "", "Accept", "text/csv"), http.StatusTooManyRequests, "rate_limited", "")
	if len(b.refused) != 1 || b.refused[0] != "exports" {
		t.Errorf("refused by %q", b.refused)
	}
	close(leave)
	for range api.MaxOwnExports {
		if status := <-done; status != http.StatusOK {
			t.Errorf("answered %d", status)
		}
	}
	if w := do(h, "HEAD", "/api/invoices", "", "Accept", "text/csv"); w.Code != http.StatusOK || w.Body.Len() > 0 || fmt.Sprint(w.Header()["Trailer"]) != "[Quittance-Rows]" ||
		!slices.Contains(w.Header()["Vary"], "Accept-Encoding") {
		t.Errorf("HEAD answers %d %v", w.Code, w.Header())
	}
}

// TestLongRequestsCheckTheirKeys revokes a key during an export and a report.
func TestLongRequestsCheckTheirKeys(t *testing.T) {
	for name, c := range map[string]struct {
		path  string
		ended func(*httptest.ResponseRecorder) bool
	}{
		"export": {"/api/invoices", func(w *httptest.ResponseRecorder) bool { return w.Header().Get("Quittance-Rows") == "" }}, // it has begun
		"report": {"/api/reports/settlement?from=0&to=86400", func(w *httptest.ResponseRecorder) bool { return w.Code == http.StatusUnauthorized }},
	} {
		t.Run(name, func(t *testing.T) {
			playLive(t, 1, func(t *testing.T, l live) {
				l.invoices = newListBackend(1000).invoices
				reads := 0
				l.wait = func(context.Context) error {
					clock.Sleep(t.Context(), time.Second, nil)
					if reads++; reads == 1 {
						l.lost = access.ErrRevoked
					}
					return nil
				}
				r := newRequest("GET", c.path, "")
				r.Header.Set("Authorization", "Bearer x")
				r.Header.Set("Accept", "text/csv")
				w := httptest.NewRecorder()
				func() {
					defer func() {
						if cut := recover(); cut != nil && cut != any(http.ErrAbortHandler) {
							panic(cut)
						}
					}()
					l.handler.ServeHTTP(w, r.WithContext(access.WithPrincipal(r.Context(), access.Principal{KeyID: "key_1", Scopes: access.Admin})))
				}()
				if !c.ended(w) || reads > 3 {
					t.Errorf("answered %d after %d reads: %.300s", w.Code, reads, w.Body)
				}
			})
		})
	}
}
