package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// listInbox answers GET /api/inbox.
func (a *API) listInbox(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	scope := q.scope("inbox", "merchantId", "kind")
	f := ledger.InboxFilter{MerchantID: q.merchantID(), Kind: invoice.ItemKind(one(q, "kind", invoice.ItemKinds)), Before: q.cursor(scope), Limit: q.limit()}
	if id, ok := q.get("objectId"); ok {
		f.ObjectID = id
		if !isVisibleASCII(id) || len(id) > maxObjectID || f.Kind != "" || f.Before != "" {
			q.reject("objectId", "must be the id of a payment or an invoice, without kind and cursor")
		}
	}
	if q.err != nil {
		return q.err
	}
	list := apitypes.InboxList{Items: []apitypes.InboxItem{}}
	if !q.none {
		items, next, err := a.conf.Ledger.Inbox(r.Context(), f)
		if err != nil {
			return fmt.Errorf("list inbox: %w", err)
		}
		if list.Items, err = a.fromItems(r.Context(), items, f.MerchantID); err != nil {
			return err
		}
		list.NextCursor = stoppedCursor(scope, next)
	}
	return a.writeJSON(w, r, http.StatusOK, list, nil)
}

// fromItems converts items with the objects that they are about.
func (a *API) fromItems(ctx context.Context, items []ledger.InboxItem, merchantID string) ([]apitypes.InboxItem, error) {
	var rows []ledger.PaymentRow
	for _, item := range items {
		if item.Payment.ID != "" {
			rows = append(rows, item.Payment)
		}
	}
	payments, err := a.fromPayments(ctx, rows, merchantID, shownMembers{details: true, candidates: true})
	if err != nil {
		return nil, err
	}
	list := make([]apitypes.InboxItem, len(items))
	for i, item := range items {
		list[i] = apitypes.InboxItem{Kind: apitypes.InboxKind(item.Kind), Version: item.Version}
		switch {
		case item.Payment.ID != "":
			p := payments[0].(apitypes.Payment)
			payments = payments[1:]
			list[i].Payment, list[i].CreatedAt = &p, invoice.UnixSeconds(item.Payment.ObservedAt)
		case item.Invoice.ID != "":
			inv := apiconv.Invoice(item.Invoice)
			list[i].Invoice, list[i].CreatedAt = &inv, inv.CreatedAt
		default:
			refund := apiconv.RefundRecord(item.Refund, a.conf.RefundNow())
			list[i].Refund, list[i].CreatedAt = &refund, refund.CreatedAt
		}
	}
	return list, nil
}

// countInbox answers GET /api/inbox/counts.
func (a *API) countInbox(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	merchantID := q.merchantID()
	if q.err != nil {
		return q.err
	}
	var counts []ledger.InboxCount
	var err error
	if !q.none {
		counts, err = a.conf.Ledger.InboxCounts(r.Context(), merchantID)
	}
	return a.writeJSON(w, r, http.StatusOK, apitypes.InboxCounts{Counts: db.Each(counts, func(c ledger.InboxCount) apitypes.InboxCount {
		return apitypes.InboxCount{Kind: apitypes.InboxKind(c.Kind), Count: c.Count, More: c.More}
	})}, db.During("count inbox", err))
}

// decide answers POST /api/inbox/decisions.
func (a *API) decide(w http.ResponseWriter, r *http.Request, o object) error {
	var req ledger.DecisionRequest
	var named string
	err := cmp.Or(
		text(o, "", "kind", &req.Kind, func(s string) (invoice.ItemKind, error) { return invoice.ItemKind(s), nil }),
		text(o, "", "objectId", &req.ObjectID, asIs),
		text(o, "", "version", &req.Version, asIs),
		text(o, "", "decision", &req.Outcome, func(s string) (invoice.Outcome, error) { return invoice.Outcome(s), nil }),
		label(o, "reason", &req.Reason),
	)
	if req.Outcome == invoice.Attributed && err == nil {
		err = text(o, "", "invoiceId", &req.InvoiceID, parseInvoiceID)
	}
	if err = cmp.Or(err, optional(o, "merchantId", func(name string) error { return text(o, "", name, &named, asIs) })); err != nil {
		return err
	}
	if req.MerchantID, err = ownMerchant(r.Context(), named); err != nil {
		return err
	}
	if !isVisibleASCII(req.ObjectID) || !invoice.ValidMerchantID(req.MerchantID) && req.MerchantID != "" {
		return fmt.Errorf("decide: %w", db.ErrNotFound)
	}
	d, err := a.conf.Ledger.Decide(r.Context(), req)
	return a.created(w, r, ledger.Once{}, "/api/inbox/decisions?objectId="+d.ObjectID, apitypes.DecisionResponse{Decision: apiconv.Decision(d)}, db.During("decide", err))
}

// undoDecision answers POST /api/inbox/decisions/{id}/undo.
func (a *API) undoDecision(w http.ResponseWriter, r *http.Request) error {
	d, err := a.conf.Ledger.UndoDecision(r.Context(), r.PathValue("id"), access.FromContext(r.Context()).MerchantID)
	return a.writeJSON(w, r, http.StatusOK, apitypes.DecisionResponse{Decision: apiconv.Decision(d)}, db.During("undo decision", err))
}

// listDecisions answers GET /api/inbox/decisions.
func (a *API) listDecisions(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	filter := ledger.DecisionFilter{MerchantID: q.merchantID(), ObjectID: q.id("objectId", "", "a payment, an invoice or a refund")}
	return listing[invoice.Decision]{
		name: "decisions", query: q, scope: q.scope("decisions", "merchantId", "objectId"), elements: elementsOf(apiconv.Decision),
		key: func(d *invoice.Decision) string { return d.ID },
		find: func(ctx context.Context, before string, n int) ([]invoice.Decision, string, error) {
			filter.Before, filter.Limit = before, n
			return all(a.conf.Reader.Decisions(ctx, filter))
		},
	}.serve(a, w, r)
}

// maxObjectID bounds an id in a path or a filter, in bytes.
const maxObjectID = 64

// usedDetail returns the detail that names the use of a payment.
func usedDetail(e *ledger.UsedError) string {
	switch {
	case e.Use == invoice.UseRefunding && e.RefundID != "":
		return fmt.Sprintf("The payment %s is being sent back by the refund %s. Cancel that first, if it was not sent.", e.Payment.ID, e.RefundID)
	case e.Use == invoice.UseRefunding:
		return "The payment " + e.Payment.ID + " is being sent back."
	case e.Use == invoice.UseRefunded:
		return "The payment " + e.Payment.ID + " was sent back."
	case e.Use == invoice.UseDismissed, e.Use == invoice.UseAttributing:
		return "Another merchant of the address has decided about the payment " + e.Payment.ID + ". The operator can take that back."
	}
	return "The payment " + e.Payment.ID + " is " + string(e.Use) + "."
}

// conflictOf returns the problem of a decision or an attribution that another person made first, or nil.
func conflictOf(decided *ledger.DecidedError, attributed *ledger.AttributedError) *problemError {
	stamp := func(at time.Time) string { return clock.Format(at, time.UTC, time.RFC3339) }
	switch {
	case decided != nil:
		return &problemError{code: apitypes.CodeAlreadyDecided, detail: fmt.Sprintf("%s has %s this at %s, because: %s. Undo that decision first, if it was wrong.",
			decided.By, decided.Outcome, stamp(decided.At), strings.TrimSuffix(decided.Reason, "."))}
	case attributed.AttributedBy != "":
		return &problemError{code: apitypes.CodeAlreadyAttributed, detail: fmt.Sprintf("This payment belongs to the invoice %s, and stays there: %s attributed it at %s.",
			attributed.InvoiceID, attributed.AttributedBy, stamp(attributed.AttributedAt))}
	}
	return &problemError{code: apitypes.CodeAlreadyAttributed, detail: "This payment belongs to the invoice " + attributed.InvoiceID + ", and stays there."}
}

// Limits of an unattributed payment in a list.
const (
	// MaxCandidates bounds its candidate invoices.
	MaxCandidates = 5
	// MaxListedClaims bounds its claims.
	MaxListedClaims = 5
)

// listClaims answers GET /api/claims.
func (a *API) listClaims(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	filter := ledger.ClaimFilter{MerchantID: q.merchantID(), PaymentID: q.id("paymentId", invoice.PrefixPayment, "a payment")}
	return listing[ledger.ClaimRow]{
		name: "claims", query: q, scope: q.scope("claims", "merchantId", "paymentId"), elements: elementsOf(Claim),
		key: func(c *ledger.ClaimRow) string { return c.ID },
		find: func(ctx context.Context, before string, n int) ([]ledger.ClaimRow, string, error) {
			filter.Before, filter.Limit = before, n
			return all(a.conf.Reader.Claims(ctx, filter))
		},
	}.serve(a, w, r)
}

// addCandidates adds the candidate invoices and the claims to unattributed payments. If
// merchantID is set, only invoices of that merchant are added.
func (a *API) addCandidates(ctx context.Context, list []apitypes.Payment, found []ledger.PaymentRow, merchantID string) error {
	var ids []string
	var lookups []ledger.NearLookup
	for _, p := range found {
		if !p.Attributed() {
			ids = append(ids, p.ID)
			lookups = append(lookups, ledger.NearLookup{Transfer: p.Transfer, CreatedBefore: p.ObservedAt.Add(time.Second)})
		}
	}
	near, err := a.conf.Reader.NearInvoices(ctx, lookups, merchantID)
	if err != nil {
		return fmt.Errorf("find candidates: %w", err)
	}
	for i, p := range found {
		if !p.Attributed() {
			list[i].Candidates = apiconv.PaymentCandidates(invoice.Suggest(p.Transfer, near[0], MaxCandidates))
			near = near[1:]
		}
	}
	claims, err := a.conf.Reader.ClaimsOfPayments(ctx, ids, merchantID, MaxListedClaims)
	if err != nil {
		return fmt.Errorf("read claims: %w", err)
	}
	for i, p := range found {
		if of := claims[p.ID]; len(of) > 0 {
			list[i].Claims = db.Each(of, Claim)
		}
	}
	return nil
}

// Claim returns a payer's claim with its current status.
func Claim(c ledger.ClaimRow) apitypes.Claim {
	w := apitypes.Claim{
		ID: c.ID, PaymentID: c.PaymentID, InvoiceID: c.InvoiceID, MerchantID: c.MerchantID,
		Signed: c.Signed, Status: apitypes.ClaimOpen, CreatedAt: invoice.UnixSeconds(c.At),
	}
	switch c.AttributedTo {
	case "":
	case c.InvoiceID:
		w.Status = apitypes.ClaimAccepted
	default:
		w.Status = apitypes.ClaimDeclined
	}
	return w
}

// attributePayment answers POST /api/payments/{id}/attribution.
func (a *API) attributePayment(w http.ResponseWriter, r *http.Request, o object) error {
	asked, err := parseAttribution(o)
	if err != nil {
		return err
	}
	asked.PaymentID, asked.MerchantID = r.PathValue("id"), access.FromContext(r.Context()).MerchantID
	p, err := a.conf.Ledger.AttributeManually(r.Context(), asked)
	if err != nil {
		return fmt.Errorf("attribute payment: %w", err)
	}
	return a.writePayment(w, r, p)
}

// parseAttribution parses the members of an attribution. It returns an *invoice.FieldError for the first invalid one.
func parseAttribution(o object) (ledger.ManualAttribution, error) {
	var asked ledger.ManualAttribution
	err := cmp.Or(
		text(o, "", "invoiceId", &asked.InvoiceID, parseInvoiceID),
		label(o, "by", &asked.By),
	)
	if _, given := o["note"]; err == nil && given {
		err = label(o, "note", &asked.Note)
	}
	return asked, err
}

// label reads a string that is stored for display.
func label(o object, name string, dst *string) error {
	if err := text(o, "", name, dst, asIs); err != nil {
		return err
	}
	return invoice.CheckLabel(name, *dst)
}

// parseInvoiceID checks the prefix and the characters of an invoice id, because not every text is valid in a database.
func parseInvoiceID(s string) (string, error) {
	if !strings.HasPrefix(s, invoice.PrefixInvoice) || !isVisibleASCII(s) {
		return "", errors.New("must be the id of an invoice")
	}
	return s, nil
}
