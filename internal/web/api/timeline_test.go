package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/webhooks"
)

func TestTimeline(t *testing.T) {
	b := newListBackend(1) // paid at now+30
	at := func(n int64) time.Time { return invoice.Unix(now + n) }
	p := b.payments[0]
	p.ObservedAt, p.ConfirmedAt = at(20), at(40)
	event := invoice.PrefixEvent + number(1)
	sweep := invoice.Sweep{ID: "swp_1", ObservedAt: at(55), ConfirmedAt: at(70)}
	b.history = ledger.InvoiceHistory{
		Payments: []ledger.SeenPayment{{PaymentRow: p, OrphanedAt: at(25), Confirmations: []ledger.Confirmation{{Number: 1, Time: at(35)}, {Number: 2, Time: at(40)}}}},
		Reported: []ledger.ReportedTransaction{{Hash: p.TxHash, At: at(19)}},
		Signed:   []ledger.Authorization{{ID: "aut_1", CreatedAt: at(18)}},
		Sweeps:   []ledger.SeenSweep{{Sweep: sweep, OrphanedAt: at(60)}},
		Events:   []webhooks.Event{{ID: event, Type: invoice.EventReceived, CreatedAt: at(20)}},
		Attempts: []ledger.EventAttempt{{EventID: event, Number: 1, Started: at(20).Add(5 * time.Millisecond), StatusCode: 500, Error: "500"}, {EventID: event, Number: 2, Started: at(50), StatusCode: 200}},
		Txs:      []ledger.CommitmentTx{{Kind: invoice.IntentOpen, Hash: invoice.Hash{7}, Created: at(2), Cost: ledger.TxCost{Gwei: 52, At: at(3)}}}, OpenedAt: at(2),
	}
	h := newAPI(t, b)
	confirmations := 0
	var got []string
	path, cursor := "/api/invoices/"+invoiceID(0)+"/timeline?limit=3", ""
	for pages := 1; ; pages++ {
		page := decode[apitypes.Timeline](t, do(h, "GET", path+cursor, ""), http.StatusOK)
		for _, e := range page.Entries {
			got = append(got, e.Kind)
			if e.Kind == "payment.confirmation" {
				confirmations++
				if e.Confirmation != confirmations || e.Confirmations != 0 || e.PaymentID != p.ID || e.TxHash == "" {
					t.Errorf("confirmation %d is %+v", confirmations, e)
				}
			}
			if e.Kind == "commitment.open" && e.CostGwei != "52" {
				t.Errorf("the transaction cost %q", e.CostGwei)
			}
		}
		if page.NextCursor == "" {
			if pages != 6 {
				t.Errorf("%d pages, want 6", pages)
			}
			break
		}
		cursor = "&cursor=" + page.NextCursor
	}
	want := []string{
		"invoice.created", "commitment.open", "invoice.opened", "payment.signed", "payment.sent", "payment.seen", "event", "delivery.attempt", "payment.orphaned", "invoice.paid",
		"payment.confirmation", "payment.confirmation", "payment.confirmed", "delivery.attempt",
		"sweep.seen", "sweep.orphaned", "sweep.confirmed",
	}
	expect.NoDiff(t, cmp.Diff(want, got), "")
	wantProblem(t, do(h, "GET", "/api/invoices/"+invoiceID(5)+"/timeline", ""), http.StatusNotFound, "not_found", "")
}

// TestTimelineOfStates reads the timelines of invoices with different outcomes.
func TestTimelineOfStates(t *testing.T) {
	finalized := ledger.InvoiceTransition{Status: invoice.Open, At: invoice.Unix(now + 5)}
	void := ledger.InvoiceTransition{Status: invoice.Void, At: invoice.Unix(now + 9)}
	for name, c := range map[string]struct {
		status      invoice.Status
		transitions []ledger.InvoiceTransition
		want        []string
	}{
		"draft":                {invoice.Drafted, nil, []string{"invoice.created"}},
		"open":                 {invoice.Open, nil, []string{"invoice.created"}},
		"finalized":            {invoice.Open, []ledger.InvoiceTransition{finalized}, []string{"invoice.created", "invoice.finalized"}},
		"finalized and void":   {invoice.Void, []ledger.InvoiceTransition{void, finalized}, []string{"invoice.created", "invoice.finalized", "invoice.void"}},
		"finalized, expired":   {invoice.Expired, []ledger.InvoiceTransition{finalized}, []string{"invoice.created", "invoice.finalized", "invoice.expired"}},
		"a draft that is void": {invoice.Void, []ledger.InvoiceTransition{void}, []string{"invoice.created", "invoice.void"}},
	} {
		b := newListBackend(2)
		b.invoices[1].Status = c.status
		for _, truncated := range []bool{false, true} {
			b.history = ledger.InvoiceHistory{Transitions: c.transitions, Truncated: truncated}
			w := do(newAPI(t, b), "GET", "/api/invoices/"+invoiceID(1)+"/timeline", "")
			if strings.Contains(w.Body.String(), "truncated") != truncated {
				t.Errorf("%s: %s", name, w.Body)
			}
			page := decode[apitypes.Timeline](t, w, http.StatusOK)
			var got []string
			for _, e := range page.Entries {
				got = append(got, e.Kind)
			}
			if diff := cmp.Diff(c.want, got); diff != "" || page.Truncated != truncated {
				t.Errorf("%s: truncated %t (-want +got):\n%s", name, page.Truncated, diff)
			}
		}
	}
}

// TestTimelineOfDecisions names who decided about an invoice, and why.
func TestTimelineOfDecisions(t *testing.T) {
	b := newListBackend(2)
	b.history = ledger.InvoiceHistory{Decisions: []invoice.Decision{{
		ID: "dec_1", Outcome: invoice.Accepted, By: "maria", Reason: "A good customer", At: invoice.Unix(now + 3), UndoneBy: "nadia", UndoneAt: invoice.Unix(now + 4),
	}}}
	page := decode[apitypes.Timeline](t, do(newAPI(t, b), "GET", "/api/invoices/"+invoiceID(1)+"/timeline", ""), http.StatusOK)
	var got []string
	for _, e := range page.Entries {
		got = append(got, e.Kind+" "+e.By+" "+e.Reason)
	}
	expect.NoDiff(t, cmp.Diff([]string{"invoice.created  ", "decision.accepted maria A good customer", "decision.undone nadia "}, got), "")
}

func TestPaymentsOfInvoice(t *testing.T) {
	b := newListBackend(8)
	h := newAPI(t, b)
	list := decode[apitypes.PaymentList](t, do(h, "GET", "/api/invoices/"+invoiceID(3)+"/payments", ""), http.StatusOK).Payments
	if len(list) != 1 || list[0].InvoiceID != invoiceID(3) || list[0].Status != apitypes.PaymentPending {
		t.Errorf("%+v", list)
	}
	wantProblem(t, do(h, "GET", "/api/invoices/inv_x/payments", ""), http.StatusNotFound, "not_found", "")
}

func TestFindInvoices(t *testing.T) {
	h := newAPI(t, newListBackend(8))
	list := decode[apitypes.InvoiceList](t, do(h, "GET", "/api/invoices?q=inv_&limit=5&merchantId=acme", ""), http.StatusOK)
	if len(list.Invoices) != 4 || list.Invoices[0].ID != invoiceID(6) || list.NextCursor != "" {
		t.Errorf("found %d, the cursor is %q", len(list.Invoices), list.NextCursor)
	}
	longest := strings.Repeat("é", invoice.MaxLabel)
	decode[apitypes.InvoiceList](t, do(h, "GET", "/api/invoices?q="+url.QueryEscape(longest), ""), http.StatusOK)
	wantProblem(t, do(h, "GET", "/api/invoices?q="+url.QueryEscape(longest+"é"), ""), http.StatusBadRequest, "invalid_field", "q")
	for query, field := range map[string]string{"q=": "q", "q=x&status=open": "q", "q=x&cursor=y": "q", "q=%00": "q", "q=x&limit=0": "limit", "q=%20": "q"} {
		wantProblem(t, do(h, "GET", "/api/invoices?"+query, ""), http.StatusBadRequest, "invalid_field", field)
	}
}

// A chain's testClock may be behind or ahead of the service's.
func TestConfirmationsFollowThePayment(t *testing.T) {
	b := newListBackend(1)
	p := b.payments[0]
	p.ObservedAt, p.ConfirmedAt = invoice.Unix(now+20), invoice.Unix(now+40)
	b.history = ledger.InvoiceHistory{Payments: []ledger.SeenPayment{{PaymentRow: p, Confirmations: []ledger.Confirmation{
		{Number: 1, Time: invoice.Unix(now + 15)}, {Number: 2, Time: invoice.Unix(now + 30)}, {Number: 3, Time: invoice.Unix(now + 45)},
	}}}}
	var got []string
	for _, e := range decode[apitypes.Timeline](t, do(newAPI(t, b), "GET", "/api/invoices/"+invoiceID(0)+"/timeline", ""), http.StatusOK).Entries {
		if e.PaymentID != "" {
			got = append(got, fmt.Sprintf("%s %d", e.Kind, e.At-now))
		}
	}
	want := []string{"payment.seen 20", "payment.confirmation 20", "payment.confirmation 30", "payment.confirmation 40", "payment.confirmed 40"}
	expect.NoDiff(t, cmp.Diff(want, got), "entries")
}
