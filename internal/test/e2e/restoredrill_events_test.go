package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/webhook"
)

// drillFollower follows the events of the service with a stored cursor, like a program that is
// restarted.
type drillFollower struct {
	mu    sync.Mutex
	after string
	seen  map[string]webhook.Event // by id
}

func newDrillFollower() *drillFollower {
	return &drillFollower{after: client.AfterStart, seen: make(map[string]webhook.Event)}
}

// follow follows the events until the returned function is called.
func (d *drill) follow() (stop func()) {
	d.Helper()
	ctx, cancel := context.WithCancel(d.ctx)
	done, f := make(chan struct{}), d.follower
	api := client.Must(client.New(d.info.Load().BaseURL, client.WithKey(operatorKey))) // without a limit for the whole answer
	go func() {
		defer close(done)
		for e, err := range api.StreamEvents(ctx, client.EventFilter{}, f.after) {
			if ctx.Err() != nil || err != nil && d.killed.Load() {
				return
			}
			if err != nil {
				d.Errorf("the follower: %v", err)
				return
			}
			f.mu.Lock()
			f.after, f.seen[e.Event.ID] = e.Position, e.Event
			f.mu.Unlock()
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// checkCursor checks that the service reports that its log does not continue from the stored cursor,
// if the follower has events that the backup lacks.
func (d *drill) checkCursor() {
	d.Helper()
	f := d.follower
	a := d.do(http.MethodGet, "/api/events?after="+url.QueryEscape(f.after), "")
	lost := int64(len(f.seen)) > d.report.LastSeq
	if gone := a.status == http.StatusGone && bytes.Contains(a.body, []byte(`"cursor_gone"`)); lost && !gone {
		d.Errorf("the cursor %s of the lost log is answered %d %.300s", f.after, a.status, a.body)
	}
}

// fact is the content of an event without the state at its time.
type fact struct{ typ, invoiceID, subject string }

// factOf returns the fact that an event reports.
func factOf(e webhook.Event) (f fact, err error) {
	var data struct {
		Invoice struct{ ID string }
		Payment struct{ ID, InvoiceID, TxHash string }
		Refund  struct{ ID, InvoiceID, TxHash string }
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return f, err
	}
	f = fact{e.Type, data.Invoice.ID, ""}
	switch {
	case data.Refund.ID != "":
		f.invoiceID, f.subject = data.Refund.InvoiceID, data.Refund.TxHash
	case data.Payment.ID != "":
		f.invoiceID, f.subject = data.Payment.InvoiceID, data.Payment.TxHash
	}
	return f, nil
}

// facts returns the facts of an order.
func (o *drillOrder) facts() (facts []fact) {
	facts = append(facts, fact{webhook.InvoiceCreated, o.made.ID, ""})
	for _, p := range o.payments {
		facts = append(facts, fact{webhook.PaymentReceived, o.made.ID, p.tx.Hex()})
	}
	for _, tx := range o.refunds {
		facts = append(facts, fact{webhook.PaymentRefunded, o.made.ID, tx.Hex()})
	}
	switch o.status(true) {
	case apitypes.StatusPaid:
		facts = append(facts, fact{webhook.InvoicePaid, o.made.ID, ""})
	case apitypes.StatusExpired:
		facts = append(facts, fact{webhook.InvoiceExpired, o.made.ID, ""})
	default:
	}
	return facts
}

// eventFaults compares the events that the merchant and the follower got with the facts.
func (d *drill) eventFaults() (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	var delivered []webhook.Event
	events, _ := d.receiver.got()
	for _, e := range events {
		if e.accepted > 0 {
			delivered = append(delivered, e.Event)
		}
	}
	d.follower.mu.Lock()
	followed := make([]webhook.Event, 0, len(d.follower.seen))
	for _, e := range d.follower.seen {
		followed = append(followed, e)
	}
	d.follower.mu.Unlock()
	want, optional := d.wantFacts()
	unknown := d.unanswered(slices.Concat(delivered, followed))
	ids := make(map[fact]string)
	for name, got := range map[string][]webhook.Event{"merchant": delivered, "follower": followed} {
		seen := make(map[fact]bool)
		for _, e := range got {
			f, err := factOf(e)
			switch {
			case err != nil:
				fault("%s: %v", e.ID, err)
			case !want[f] && !optional[f] && !unknown[f.invoiceID]:
				fault("the %s got a false event: %+v, %.600s", name, f, e.Data)
			case ids[f] != "" && ids[f] != e.ID:
				fault("%+v came as %s and as %s", f, ids[f], e.ID)
			}
			seen[f], ids[f] = true, e.ID
		}
		for f := range want {
			if !seen[f] {
				fault("the %s missed %+v", name, f)
			}
		}
	}
	return faults
}

// unanswered returns the ids in the events of invoices with a create request that was sent and not
// answered. The merchant does not know whether they exist.
func (d *drill) unanswered(events []webhook.Event) map[string]bool {
	amounts := make(map[string]bool)
	for _, o := range d.orders {
		if o.begun && o.made == nil {
			amounts[fmt.Sprint(o.amount())] = true
		}
	}
	ids := make(map[string]bool)
	for _, e := range events {
		var data struct{ Invoice struct{ ID, Amount string } }
		if json.Unmarshal(e.Data, &data) == nil && amounts[data.Invoice.Amount] {
			ids[data.Invoice.ID] = true
		}
	}
	return ids
}

// wantFacts returns the facts that must have an event, and the facts that may have one.
func (d *drill) wantFacts() (want, optional map[fact]bool) {
	want, optional = make(map[fact]bool), maps.Clone(d.funding)
	for _, o := range d.orders {
		if o.made == nil {
			continue
		}
		for _, f := range o.facts() {
			if o.lost {
				optional[f] = true
			} else {
				want[f] = true
			}
		}
		for _, p := range o.payments {
			if o.lost {
				optional[fact{string(apitypes.EventPaymentUnattributed), "", p.tx.Hex()}] = true
			}
		}
	}
	return want, optional
}

// followerFaults returns the events of the log that the follower did not get.
func (d *drill) followerFaults(ctx context.Context) (missed []string) {
	for e, err := range d.api().Events(ctx, client.EventFilter{}) {
		if err != nil {
			return []string{err.Error()}
		}
		d.follower.mu.Lock()
		if _, seen := d.follower.seen[e.ID()]; !seen {
			missed = append(missed, fmt.Sprintf("the follower missed %s (%.200s)", e.ID(), e.Event))
		}
		d.follower.mu.Unlock()
	}
	return missed
}
