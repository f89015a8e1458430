package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// Nodes calls the nodes of chains, in bounded time. *chain.Inspector implements it.
type Nodes interface {
	// Account returns the kind of an account of a chain.
	Account(ctx context.Context, chainKey string, account invoice.Address) invoice.AccountKind
	// RefundTransaction returns the state of a transaction that was to send a refund. through is the last final block up
	// to which the chain is read.
	RefundTransaction(ctx context.Context, chainKey string, tx invoice.Hash, through uint64) (chain.TransactionState, error)
	// SafeTransaction returns the state of a hash that a contract's owners may sign.
	SafeTransaction(ctx context.Context, r invoice.RefundRecord, hash invoice.Hash, through invoice.Header) (chain.SafeAnswers, error)
	// HasWaiting reports whether a transaction of an account waits to be mined.
	HasWaiting(ctx context.Context, chainKey string, account invoice.Address) (bool, error)
}

// prepareRefund answers POST /api/payments/{id}/refunds.
func (a *API) prepareRefund(w http.ResponseWriter, r *http.Request, o object, once ledger.Once) error {
	asked, err := parseRefund(o)
	if err != nil {
		return err
	}
	payment, err := a.visiblePayment(r)
	if err != nil {
		return err
	}
	p := access.FromContext(r.Context())
	asked.Once, asked.PaymentID, asked.MerchantID = once, payment.ID, p.MerchantID
	if !asked.AskPayer {
		to := asked.To
		if to.IsZero() {
			to = payment.From
		}
		asked.Account = a.conf.Nodes.Account(chain.OnBehalfOf(r.Context(), p.MerchantID), payment.ChainKey, to)
	}
	refund, err := a.conf.Ledger.PrepareRefund(r.Context(), asked)
	if err == nil {
		markReplay(w, once)
		w.Header().Set("Location", "/api/refunds/"+refund.ID)
	}
	return a.writeRefund(w, r, http.StatusCreated, refund, db.During("prepare refund", err))
}

// parseRefund parses the members of a refund, which are optional.
func parseRefund(o object) (ledger.RefundRequest, error) {
	var asked ledger.RefundRequest
	if _, given := o["amount"]; given {
		if err := text(o, "", "amount", &asked.Amount, parsePositive); err != nil {
			return asked, err
		}
	}
	if asked.AskPayer = o["to"] == ledger.AskPayer; !asked.AskPayer && o["to"] != nil {
		if err := text(o, "", "to", &asked.To, chain.ParseAddress); err != nil {
			return asked, err
		}
	}
	if _, given := o["to"]; given && !asked.AskPayer && asked.To.IsZero() {
		return asked, invalidField("to", "must be an address other than zero, or %s", ledger.AskPayer)
	}
	if _, given := o["reason"]; given {
		return asked, label(o, "reason", &asked.Reason)
	}
	return asked, nil
}

// parsePositive parses an amount that is not 0.
func parsePositive(s string) (invoice.Amount, error) {
	a, err := invoice.ParseAmount(s)
	if err == nil && a.IsZero() {
		err = errors.New("must be more than 0")
	}
	return a, err
}

// visiblePayment returns the payment that the request's path names, if the principal may see it.
func (a *API) visiblePayment(r *http.Request) (ledger.PaymentRow, error) {
	p, err := a.conf.Reader.Payment(r.Context(), r.PathValue("id"))
	if err == nil {
		err = a.checkSees(r.Context(), p)
	}
	if err != nil {
		return p, fmt.Errorf("read payment: %w", err)
	}
	return p, nil
}

// includeSafe is the value of the parameter include for what a contract does with a submission.
const includeSafe = "safe"

// writeRefund answers with a refund, and with its transaction or the page for the payer. With includeSafe it asks nodes
// about the submission in force. If err is not nil, it returns that.
func (a *API) writeRefund(w http.ResponseWriter, r *http.Request, status int, refund invoice.RefundRecord, err error, include ...string) error {
	if err != nil {
		return err
	}
	now := a.conf.RefundNow()
	refund.Status = refund.StatusAt(now)
	answer := apitypes.RefundResponse{Refund: apiconv.RefundRecord(refund, now)}
	network, known := a.chains[refund.ChainKey]
	if known && refund.CanBeSent(now) && a.conf.Closed() == "" {
		if answer.Transaction, err = apiconv.RefundTransaction(refund, network.ID); err != nil {
			return err
		}
	}
	// A key that may not prepare refunds may not name their recipient either.
	if refund.Status == invoice.RefundAwaitingAddress && access.FromContext(r.Context()).Can(access.InvoicesWrite) {
		if token := a.conf.Ledger.ClaimToken(refund); token != "" {
			answer.ClaimURL = a.conf.PublicURL + "/refunds/" + token
		}
	}
	if refund.Prepared() || refund.Transfer.Status == invoice.Orphaned {
		all, err := a.conf.Reader.Submissions(r.Context(), refund.ID)
		if err != nil {
			return fmt.Errorf("read submissions: %w", err)
		}
		for _, s := range all {
			shown := Submission(s)
			if slices.Contains(include, includeSafe) {
				shown.Safe = a.submissionSafe(r.Context(), refund, s)
			}
			answer.Submissions = append(answer.Submissions, shown)
		}
	}
	return a.writeJSON(w, r, status, answer, nil)
}

// getRefund answers GET /api/refunds/{id}.
func (a *API) getRefund(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	include := q.set("include", includeSafe)
	if q.err != nil {
		return q.err
	}
	refund, err := a.conf.Reader.RefundRecord(r.Context(), r.PathValue("id"))
	if err != nil {
		return fmt.Errorf("read refund: %w", err)
	}
	by := access.FromContext(r.Context())
	sees := by.Sees(refund.MerchantID)
	if !sees && by.MerchantID != "" {
		if sees, err = a.conf.Reader.SeesRefund(r.Context(), by.MerchantID, refund); err != nil {
			return fmt.Errorf("read the payment of a refund: %w", err)
		}
	}
	if !sees {
		return db.ErrNotFound
	}
	return a.writeRefund(w, r, http.StatusOK, refund, nil, include...)
}

// cancelRefund answers POST /api/refunds/{id}/cancel.
func (a *API) cancelRefund(w http.ResponseWriter, r *http.Request) error {
	refund, err := a.conf.Ledger.CancelRefund(r.Context(), r.PathValue("id"), access.FromContext(r.Context()).MerchantID)
	return a.writeRefund(w, r, http.StatusOK, refund, db.During("cancel refund", err))
}

// approveRefund answers POST /api/refunds/{id}/approve.
func (a *API) approveRefund(w http.ResponseWriter, r *http.Request, o object) error {
	var to invoice.Address
	if err := text(o, "", "to", &to, chain.ParseAddress); err != nil {
		return err
	}
	refund, err := a.conf.Ledger.ApproveRefund(r.Context(), r.PathValue("id"), access.FromContext(r.Context()).MerchantID, to)
	return a.writeRefund(w, r, http.StatusOK, refund, db.During("approve refund", err))
}

// listRefunds answers GET /api/refunds.
func (a *API) listRefunds(w http.ResponseWriter, r *http.Request) error {
	q := parseQuery(r)
	filter := ledger.RefundFilter{
		MerchantID: q.merchantID(), PaymentID: q.id("paymentId", invoice.PrefixPayment, "a payment"), InvoiceID: q.id("invoiceId", invoice.PrefixInvoice, "an invoice"),
	}
	if text, ok := q.get("txHash"); ok {
		tx, err := invoice.ParseHash(text)
		if err != nil {
			q.reject("txHash", "must be the hash of a transaction, 0x and 64 lower-case hex digits")
		}
		filter.TxHash = tx.String()
	}
	return a.refundList(w, r, q, filter)
}

// listPaymentRefunds answers GET /api/payments/{id}/refunds.
func (a *API) listPaymentRefunds(w http.ResponseWriter, r *http.Request) error {
	p, err := a.visiblePayment(r)
	if err != nil {
		return err
	}
	return a.refundList(w, r, parseQuery(r), ledger.RefundFilter{PaymentID: p.ID, SeenBy: access.FromContext(r.Context()).MerchantID})
}

// refundList answers with a page of refunds.
func (a *API) refundList(w http.ResponseWriter, r *http.Request, q *query, filter ledger.RefundFilter) error {
	filter.Status, filter.ChainKey = invoice.RefundStatus(one(q, "status", invoice.RefundStatuses)), q.chainKey(a.chains)
	return listing[invoice.RefundRecord]{
		name: "refunds", query: q, scope: q.scope("refunds "+filter.PaymentID, "merchantId", "paymentId", "invoiceId", "txHash", "status", "chainKey"),
		key:   func(r *invoice.RefundRecord) string { return ledger.RefundListID(r.CreatedAt, r.ID) },
		table: a.refundTable(),
		find: func(ctx context.Context, before string, n int) ([]invoice.RefundRecord, string, error) {
			filter.Before, filter.Limit = before, n
			return all(a.conf.Reader.RefundRecords(ctx, filter))
		},
		elements: elementsOf(func(refund invoice.RefundRecord) apitypes.RefundRecord {
			now := a.conf.RefundNow()
			refund.Status = refund.StatusAt(now)
			return apiconv.RefundRecord(refund, now)
		}),
	}.serve(a, w, r)
}
