package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/webhook"
)

// importCopies imports the merchant's copies. It returns how many were refused.
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
	var sum struct{ Lines, Refused, ByChain, BySignature int }
	if err := json.Unmarshal([]byte(c.stdout.String()), &sum); err != nil || sum.Lines != len(lines) || (code != 0) != (sum.Refused > 0) {
		d.Fatalf("recover import: exit code %d, %v\n%s%s", code, err, c.stdout.String(), c.stderr.String())
	}
	d.imported = sum.ByChain + sum.BySignature
	return sum.Refused
}

// checkImport finds out which invoices are lost. An invoice is not lost if its copy proves itself.
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
		if !o.lost && o.voided != nil && !d.isKnownVoid(o) { // a person decides
			if err := d.void(o); err != nil {
				d.Fatal(err)
			}
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

// check compares the restored service with what happened, now and again after all invoices have passed
// their expiry.
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

// status is the expected status of an order.
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

// stateFaults compares invoices and payments with what happened. If expired is set, all invoices have
// passed their expiry.
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
			if o.lost && o.pay != payTransfer && d.isReportedLost(o) && p.Exception != apitypes.PaymentOfLostInvoice {
				fault("%s: it is not said why its payment has no invoice: %+v", of, p)
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

// isKnownVoid reports whether the chain or the merchant's copy shows that an order is void. That is
// not certain if payments without an invoice may have paid the order by hand: then it is in the
// report, stays open, and does not expire.
func (d *drill) isKnownVoid(o *drillOrder) bool {
	for _, past := range d.report.Chains {
		for _, closed := range past.Closed {
			if closed.InvoiceID == o.made.ID && len(past.Payments) > 0 {
				return false
			}
		}
	}
	return o.voidTold
}

// isReportedLost reports whether the recovery found the commitment of an order.
func (d *drill) isReportedLost(o *drillOrder) bool {
	for _, past := range d.report.Chains {
		for _, l := range past.Lost {
			if l.OnChainID == o.made.OnChainInvoiceID {
				return true
			}
		}
	}
	return false
}

// checkRefunds checks that the service does not offer a refund of money that was paid back.
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

// summary counts what happened.
func (d *drill) summary() string {
	var made, paid, refunded, void, lost int
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
	return fmt.Sprintf("%d invoices, %d payments, %d refunds, %d void; %d invoices came back from copies, %d are lost without one that proves itself; %d events followed",
		made, paid, refunded, void, d.imported, lost, len(d.follower.seen))
}
