package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/webhook"
)

// drillFollower follows the events of the service with a stored cursor, as a program does that is started again.
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

// checkCursor checks that the service says that its log does not continue from the stored cursor, if the follower has
// events that the backup lacks.
func (d *drill) checkCursor() {
	d.Helper()
	f := d.follower
	a := d.do(http.MethodGet, "/api/events?after="+url.QueryEscape(f.after), "")
	lost := int64(len(f.seen)) > d.report.LastSeq
	if gone := a.status == http.StatusGone && bytes.Contains(a.body, []byte(`"cursor_gone"`)); lost && !gone {
		d.Errorf("the cursor %s of the lost log is answered %d %.300s", f.after, a.status, a.body)
	}
}

// importCopies imports what the merchant kept. It returns how many copies were refused.
func (d *drill) importCopies() (refused int) {
	d.Helper()
	var lines []string
	for _, o := range d.orders {
		if o.made == nil || o.copy == copyNothing {
			continue
		}
		kept := *o.made
		if o.voided != nil {
			kept.Invoice = *o.voided
		}
		var line any = kept
		if e, ok := d.receiver.delivery(webhook.InvoiceCreated, o.made.ID); ok && o.copy == copyDelivery {
			line = map[string]any{"headers": map[string]string{webhook.HeaderSignature: e.signature}, "body": string(e.body)}
		}
		text, err := json.Marshal(line)
		if err != nil {
			d.Fatal(err)
		}
		lines = append(lines, string(text))
	}
	path := filepath.Join(d.dir, "copies.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		d.Fatal(err)
	}
	c := launchWith(d, d.env, "recover", "import", path, "--config", d.file, "--json")
	code := c.exit(d, drillPatience)
	var sum struct{ Lines, Refused int }
	if err := json.Unmarshal([]byte(c.stdout.String()), &sum); err != nil || sum.Lines != len(lines) || (code != 0) != (sum.Refused > 0) {
		d.Fatalf("recover import: exit code %d, %v\n%s%s", code, err, c.stdout.String(), c.stderr.String())
	}
	return sum.Refused
}

// checkImport finds out which invoices are lost. None is whose copy proves itself.
func (d *drill) checkImport(refused int) {
	d.Helper()
	unproved := 0
	for _, o := range d.orders {
		if o.made == nil {
			continue
		}
		inv, err := d.api().Invoice(d.ctx, o.made.ID)
		var answer *client.Error
		if o.lost = errors.As(err, &answer) && answer.Code == apitypes.CodeNotFound; err != nil && !o.lost {
			d.Fatalf("read %s: %v", o.made.ID, err)
		}
		switch {
		case o.lost && o.copy != copyNothing && o.provable:
			d.Errorf("order %d, %s, is lost, and its copy exists", o.number, o.made.ID)
		case o.lost && o.copy != copyNothing:
			unproved++
		case !o.lost && (inv.DepositAddress != o.made.Invoice.DepositAddress || inv.MerchantAddress != o.made.Invoice.MerchantAddress ||
			inv.TransferAmount != o.made.Invoice.TransferAmount || inv.ExpiresAt != o.made.Invoice.ExpiresAt || inv.CreatedAt != o.made.Invoice.CreatedAt):
			d.Errorf("order %d came back with other terms: %+v, was %+v", o.number, inv, o.made.Invoice)
		}
	}
	if refused != unproved {
		d.Errorf("%d copies were refused, want %d", refused, unproved)
	}
}

// check compares the restored service with what happened, and again after all invoices have passed their expiry.
func (d *drill) check() {
	d.Helper()
	d.awaitNoFaults("before the expiry", func(ctx context.Context) []string { return d.stateFaults(ctx, false) })
	head, err := d.node.Client().HeaderByNumber(d.ctx, nil)
	if err != nil {
		d.Fatal(err)
	}
	err = d.node.SealAt(d.ctx, time.Unix(int64(head.Time), 0).Add(3*time.Hour))
	for range 3 {
		if err == nil {
			err = d.node.Seal(d.ctx)
		}
	}
	if err != nil {
		d.Fatalf("seal the last blocks: %v", err)
	}
	d.awaitNoFaults("after the expiry", func(ctx context.Context) []string {
		return slices.Concat(d.stateFaults(ctx, true), d.eventFaults(), d.followerFaults(ctx))
	})
	for _, o := range d.orders {
		d.checkRefunds(o)
	}
	d.receiver.clean()
}

// awaitNoFaults waits until there are no faults.
func (d *drill) awaitNoFaults(when string, find func(context.Context) []string) {
	d.Helper()
	ctx, cancel := context.WithTimeout(d.ctx, drillPatience)
	defer cancel()
	var faults []string
	if err := awaitEvery(ctx, drillPoll, func() bool { faults = find(d.ctx); return len(faults) == 0 }); err != nil {
		d.Errorf("%s, %d things are not as they must be:\n%s\nThe report of the recovery: %+v", when, len(faults), strings.Join(faults, "\n"), d.report)
	}
}

// status is the status that an order must have.
func (o *drillOrder) status(expired bool) apitypes.InvoiceStatus {
	switch {
	case o.voided != nil:
		return apitypes.StatusVoid
	case o.pay == payTransfer && len(o.payments) > 0, o.paid() >= o.amount():
		return apitypes.StatusPaid
	case expired:
		return apitypes.StatusExpired
	}
	return apitypes.StatusOpen
}

// stateFaults compares invoices and payments with what happened. expired says that all invoices have passed their expiry.
func (d *drill) stateFaults(ctx context.Context, expired bool) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	payments := make(map[string][]apitypes.Payment) // by transaction
	for p, err := range d.api().Payments(ctx, client.PaymentFilter{IncludePending: true, IncludeUnattributed: true}) {
		if err != nil {
			return []string{err.Error()}
		}
		payments[p.TxHash] = append(payments[p.TxHash], p)
	}
	invoices := make(map[string]apitypes.Invoice)
	for inv, err := range d.api().Invoices(ctx, client.InvoiceFilter{}) {
		if err != nil {
			return []string{err.Error()}
		}
		invoices[inv.ID] = inv
	}
	for _, o := range d.orders {
		if o.made == nil {
			continue
		}
		of, want := o.String(), o.made.ID
		if o.lost {
			want = ""
		} else {
			inv, ok := invoices[o.made.ID]
			switch {
			case !ok:
				fault("%s is not there", of)
			case o.soon && !expired && inv.Status == apitypes.StatusExpired:
			case inv.Status != o.status(expired) || inv.AmountPaid != fmt.Sprint(o.paid()):
				fault("%s is %s with %s paid, want %s with %d", of, inv.Status, inv.AmountPaid, o.status(expired), o.paid())
			}
		}
		for _, paid := range o.payments {
			found := payments[paid.tx.Hex()]
			if len(found) != 1 {
				fault("%s: its payment %s is there %d times", of, paid.tx, len(found))
				continue
			}
			p := found[0]
			if p.InvoiceID != want || p.Amount != fmt.Sprint(paid.amount) || p.ConfirmedAt == 0 || p.Status == apitypes.PaymentOrphaned {
				fault("%s: its payment is %+v", of, p)
			}
		}
		if len(o.refunds) > 0 && len(payments[o.payments[0].tx.Hex()]) == 1 && !o.lost {
			if got := payments[o.payments[0].tx.Hex()][0].AmountRefunded; got != fmt.Sprint(o.refunded()) {
				fault("%s: %s are refunded, want %d", of, got, o.refunded())
			}
		}
	}
	return faults
}

// checkRefunds checks that what was paid back is not offered again.
func (d *drill) checkRefunds(o *drillOrder) {
	d.Helper()
	if len(o.refunds) == 0 || o.lost {
		return
	}
	for p, err := range d.api().InvoicePayments(d.ctx, o.made.ID) {
		if err != nil {
			d.Fatal(err)
		}
		if p.TxHash != o.payments[0].tx.Hex() {
			continue
		}
		left := o.payments[0].amount - o.refunded()
		_, err := d.api().PrepareRefund(d.ctx, p.ID, apitypes.PrepareRefundRequest{Amount: fmt.Sprint(left + 1)})
		var answer *client.Error
		if !errors.As(err, &answer) || answer.Code != apitypes.CodeRefundExceedsPayment {
			d.Errorf("order %d: %d of the payment %s are left to be refunded, and %d are offered: %v", o.number, left, p.ID, left+1, err)
		}
	}
}

// fact is what an event says, apart from the state at its time.
type fact struct{ typ, invoiceID, subject string }

// factOf returns what an event says.
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

// unanswered returns the ids in the events of invoices whose create was sent and not answered. The merchant does not
// know whether they exist.
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

// wantFacts returns the facts of which there must be an event, and those of which there may be one.
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

// followerFaults returns the events of the log that did not come to the follower.
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

// summary counts what happened.
func (d *drill) summary() string {
	var made, paid, refunded, void, imported, lost int
	for _, o := range d.orders {
		if o.made == nil {
			continue
		}
		made++
		paid += len(o.payments)
		refunded += len(o.refunds)
		if o.voided != nil {
			void++
		}
		if o.lost {
			lost++
		}
	}
	for _, past := range d.report.Chains {
		imported += len(past.Lost)
	}
	f := d.follower
	return fmt.Sprintf("%d invoices, %d payments, %d refunds, %d void; %d lost commitments, %d invoices lost without a copy; %d events followed",
		made, paid, refunded, void, imported, lost, len(f.seen))
}
