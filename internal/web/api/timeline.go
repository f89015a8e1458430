package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/mailer"
)

// timelineEntry is an entry with its sort key: its time, then the order of entries of the same time.
type timelineEntry struct {
	key   string
	entry apitypes.TimelineEntry
}

// timeline collects entries.
type timeline []timelineEntry

// Ranks of entries at the same time.
const (
	rankInvoice = iota
	rankSent
	rankSeen
	rankConfirmation
	rankConfirmed
	rankSettled
	rankDecision
	rankEvent
	rankAttempt
)

// add adds an entry unless its time is zero.
func (t *timeline) add(at time.Time, rank int, id string, e apitypes.TimelineEntry) {
	if at.IsZero() {
		return
	}
	e.At = invoice.UnixSeconds(at)
	*t = append(*t, timelineEntry{fmt.Sprintf("%015d.%d.%s", at.UnixMilli(), rank, id), e})
}

// addTransfer adds when a transfer was seen, orphaned and confirmed. e has its other fields.
func (t *timeline) addTransfer(what, id string, e apitypes.TimelineEntry, seen, orphaned, confirmed time.Time) {
	e.Kind = what + ".seen"
	t.add(seenAt(seen, confirmed), rankSeen, id, e)
	e.Kind = what + ".orphaned"
	t.add(orphaned, rankConfirmed, id+".orphaned", e)
	e.Kind = what + ".confirmed"
	t.add(confirmed, rankConfirmed, id+".confirmed", e)
}

// seenAt returns when a transfer was seen, which is not after it was confirmed. A recovery saw it again later.
func seenAt(seen, confirmed time.Time) time.Time {
	if confirmed.IsZero() {
		return seen
	}
	return clock.Earlier(seen, confirmed)
}

// listTimeline answers GET /api/invoices/{id}/timeline.
func (a *API) listTimeline(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if _, err := a.visibleInvoice(r.Context(), id); err != nil {
		return err
	}
	q := parseQuery(r)
	h, err := a.conf.Reader.InvoiceHistory(r.Context(), id)
	if err != nil {
		return fmt.Errorf("read the history of an invoice: %w", err)
	}
	sent, err := a.conf.Reader.InvoiceMails(r.Context(), id)
	if err != nil {
		return fmt.Errorf("read the mails of an invoice: %w", err)
	}
	all, rest := timelineOf(h, sent, a.confirmationsNeeded(h.Invoice.ChainKey), a.conf.RefundNow()), ""
	if h.Truncated {
		rest = `,"truncated":true`
	}
	return listing[timelineEntry]{
		name: "entries", query: q, scope: "timeline of " + id, rest: rest, key: func(e *timelineEntry) string { return e.key },
		find: func(_ context.Context, after string, n int) ([]timelineEntry, string, error) {
			i, _ := slices.BinarySearchFunc(all, after, func(e timelineEntry, key string) int { return strings.Compare(e.key, key) })
			for i < len(all) && all[i].key <= after {
				i++
			}
			return all[i:min(len(all), i+n)], "", nil
		},
		elements: elementsOf(func(e timelineEntry) apitypes.TimelineEntry { return e.entry }),
	}.serve(a, w, r)
}

// addTxs adds the transactions of an invoice's commitment.
func (t *timeline) addTxs(txs []ledger.CommitmentTx) {
	for _, tx := range txs {
		entry := apitypes.TimelineEntry{Kind: "commitment." + string(tx.Kind), TxHash: tx.Hash.String()}
		if !tx.Cost.At.IsZero() {
			entry.CostGwei = strconv.FormatInt(tx.Cost.Gwei, 10)
		}
		t.add(tx.Created, rankInvoice, tx.Hash.String(), entry)
	}
}

// addPayments adds the transfers and authorizations of payers, and their outcomes. needed is how many
// confirmations a payment needs, or 0 if the node decides.
func (t *timeline) addPayments(h ledger.InvoiceHistory, needed uint64) {
	for _, r := range h.Reported {
		t.add(r.At, rankSent, r.Hash.String(), apitypes.TimelineEntry{Kind: "payment.sent", TxHash: r.Hash.String()})
	}
	for _, s := range h.Signed {
		t.add(s.CreatedAt, rankSent, s.ID, apitypes.TimelineEntry{Kind: "payment.signed", Amount: s.Value.String()})
	}
	for _, p := range h.Payments {
		entry := apitypes.TimelineEntry{PaymentID: p.ID, TxHash: p.TxHash.String(), Amount: p.Amount.String()}
		t.add(p.AttributedAt, rankDecision, p.ID, apitypes.TimelineEntry{
			Kind: "payment.attributed", PaymentID: p.ID, TxHash: p.TxHash.String(), Amount: p.Amount.String(), By: p.AttributedBy, Reason: p.Note,
		})
		t.addTransfer("payment", p.ID, entry, p.ObservedAt, p.OrphanedAt, p.ConfirmedAt)
		for _, c := range p.Confirmations {
			if needed == 0 || c.Number <= needed {
				t.add(confirmedAt(c, p), rankConfirmation, fmt.Sprintf("%s.%05d", p.ID, c.Number), apitypes.TimelineEntry{
					Kind: "payment.confirmation", PaymentID: p.ID, TxHash: p.TxHash.String(), Confirmation: int(c.Number), Confirmations: int(needed),
				})
			}
		}
	}
}

// addDecisions adds what people decided about the invoice, and what they took back.
func (t *timeline) addDecisions(decisions []invoice.Decision) {
	for _, d := range decisions {
		t.add(d.At, rankDecision, d.ID, apitypes.TimelineEntry{Kind: "decision." + string(d.Outcome), By: d.By, Reason: d.Reason})
		t.add(d.UndoneAt, rankDecision, d.ID+".undone", apitypes.TimelineEntry{Kind: "decision.undone", By: d.UndoneBy})
	}
}

// addMails adds the mails that were sent, failed or were returned.
func (t *timeline) addMails(sent []mailer.Mail) {
	for _, m := range sent {
		entry := apitypes.TimelineEntry{Kind: "mail." + string(m.Kind), By: m.SentBy}
		switch {
		case !m.BouncedAt.IsZero():
			t.add(m.BouncedAt, rankSeen, strconv.Itoa(m.Number), apitypes.TimelineEntry{Kind: "mail.bounced", Error: m.Error})
		case m.State == mailer.Failed:
			entry.Kind, entry.Error = "mail.failed", m.Error
		}
		t.add(m.EndedAt, rankSent, strconv.Itoa(m.Number), entry)
	}
}

// confirmedAt returns when a block confirmed a payment: at the block's time, but not before the
// payment was seen or after it was final. The chain's clock may differ from the service's.
func confirmedAt(c ledger.Confirmation, p ledger.SeenPayment) time.Time {
	at := c.Time
	if at.Before(p.ObservedAt) {
		at = p.ObservedAt
	}
	if !p.ConfirmedAt.IsZero() && at.After(p.ConfirmedAt) {
		at = p.ConfirmedAt
	}
	return at
}

// confirmationsNeeded returns how many confirmations a payment of the chain needs, or 0 if the node decides.
func (a *API) confirmationsNeeded(chainKey string) uint64 {
	if ch, ok := a.chains[chainKey]; ok && ch.Finality.Tag == "" {
		return ch.Finality.Depth + 1
	}
	return 0
}

// timelineOf returns the entries of a history in their order.
func timelineOf(h ledger.InvoiceHistory, sent []mailer.Mail, needed uint64, now time.Time) timeline {
	var t timeline
	inv := h.Invoice
	t.add(inv.CreatedAt, rankInvoice, "created", apitypes.TimelineEntry{Kind: "invoice.created", Amount: inv.Amount.String()})
	for _, to := range h.Transitions {
		kind := "invoice.finalized"
		if to.Status == invoice.Void {
			kind = "invoice.void"
		}
		t.add(to.At, rankInvoice, string(to.Status), apitypes.TimelineEntry{Kind: kind, By: to.By})
	}
	switch inv.Status {
	case invoice.Paid:
		t.add(inv.SettledAt, rankSettled, "paid", apitypes.TimelineEntry{Kind: "invoice.paid", TxHash: inv.SettledTx.String()})
	case invoice.Expired:
		t.add(inv.ExpiresAt, rankSettled, "expired", apitypes.TimelineEntry{Kind: "invoice.expired"})
	case invoice.Drafted, invoice.Open, invoice.Void:
	}
	t.add(h.OpenedAt, rankInvoice, "opened", apitypes.TimelineEntry{Kind: "invoice.opened"})
	t.addTxs(h.Txs)
	t.addPayments(h, needed)
	t.addDecisions(h.Decisions)
	t.addMails(sent)
	for _, s := range h.Sweeps {
		t.addTransfer("sweep", s.ID, apitypes.TimelineEntry{TxHash: s.TxHash.String(), Amount: s.Amount.String()}, s.ObservedAt, s.OrphanedAt, s.ConfirmedAt)
	}
	for _, r := range h.Refunds {
		entry := apitypes.TimelineEntry{Kind: "refund.seen", RefundID: r.ID, PaymentID: r.PaymentID}
		if r.Prepared() {
			entry.Kind, entry.Amount, entry.Reason = "refund.prepared", r.Amount.String(), r.Reason
		}
		if !r.Transfer.TxHash.IsZero() {
			entry.TxHash = r.Transfer.TxHash.String()
		}
		t.add(seenAt(r.CreatedAt, r.Transfer.ConfirmedAt), rankSeen, r.ID, entry)
		entry.Kind = "refund.canceled"
		t.add(r.CanceledAt, rankConfirmed, r.ID, entry)
		if r.StatusAt(now) == invoice.RefundExpired {
			entry.Kind = "refund.expired"
			t.add(r.ExpiresAt, rankConfirmed, r.ID, entry)
		}
		entry.Kind = "refund.confirmed"
		t.add(r.Transfer.ConfirmedAt, rankConfirmed, r.ID, entry)
	}
	for _, e := range h.Events {
		t.add(e.CreatedAt, rankEvent, e.ID, apitypes.TimelineEntry{Kind: "event", EventID: e.ID, EventType: apitypes.EventType(e.Type)})
	}
	for _, at := range h.Attempts {
		t.add(at.Started, rankAttempt, fmt.Sprintf("%s.%05d", at.EventID, at.Number), apitypes.TimelineEntry{
			Kind: "delivery.attempt", EventID: at.EventID, Attempt: at.Number, StatusCode: at.StatusCode, Error: at.Error,
		})
	}
	slices.SortFunc(t, func(x, y timelineEntry) int { return strings.Compare(x.key, y.key) })
	return t
}
