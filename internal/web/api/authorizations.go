package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// Limits of authorizations at the public door.
const (
	// AuthorizationsOfInvoice bounds the submitted authorizations per minute for one invoice.
	AuthorizationsOfInvoice = 40
	// AuthorizationsOfClient bounds the authorizations per minute of one client network. An IPv6 site
	// may submit limits.SiteWeight times as many. Each authorization calls the nodes, and these
	// calls are divided only among merchants.
	AuthorizationsOfClient = 60
	// AllAuthorizations bounds the authorizations per minute of all clients. A merchant, a client network at it, and a
	// client network at an invoice have a share.
	AllAuthorizations = 6000
	// MaxAuthorizationWait bounds the parameter wait of an authorization, in seconds.
	MaxAuthorizationWait = 30
	// MaxWaitingPayers bounds the requests of payers with wait that are served at a time.
	MaxWaitingPayers = 300
	// MaxWaitingForInvoice bounds the waiting requests for one invoice.
	MaxWaitingForInvoice = 5
)

// submitAuthorization answers POST /checkout/{id}/authorization.
func (a *API) submitAuthorization(w http.ResponseWriter, r *http.Request) error {
	q := parsePublicQuery(r)
	wait := q.authorizationWait()
	if q.err != nil {
		return q.err
	}
	body, err := readJSON(w, r)
	if err != nil {
		return err
	}
	submitted, err := parseAuthorization(body)
	if err != nil {
		return err
	}
	inv, err := a.conf.Reader.Invoice(r.Context(), r.PathValue("id")) // only existing invoices have a tracked limit
	if err != nil {
		return fmt.Errorf("read invoice: %w", err)
	}
	if err := a.submitted.Take(r.Context(), inv.MerchantID, inv.ID); err != nil {
		return err
	}
	accepted, err := a.conf.Ledger.Authorize(r.Context(), inv.ID, submitted)
	if err != nil {
		return fmt.Errorf("authorize payment of %s: %w", inv.ID, err)
	}
	return a.answerAuthorization(w, r, accepted, wait)
}

// getAuthorization answers GET /checkout/{id}/authorization.
func (a *API) getAuthorization(w http.ResponseWriter, r *http.Request) error {
	q := parsePublicQuery(r)
	wait := q.authorizationWait()
	named, given := q.get("authorization")
	if q.err != nil {
		return q.err
	}
	var found []ledger.Authorization
	var err error
	switch invoiceID := r.PathValue("id"); {
	case !given:
		found, err = a.conf.Reader.AuthorizationsOfInvoice(r.Context(), invoiceID, 1)
	case isVisibleASCII(named):
		found = make([]ledger.Authorization, 1)
		if found[0], err = a.conf.Reader.Authorization(r.Context(), named); found[0].InvoiceID != invoiceID {
			found = nil
		}
	}
	if err != nil {
		return fmt.Errorf("read authorization: %w", err)
	}
	if len(found) == 0 {
		return db.ErrNotFound
	}
	return a.answerAuthorization(w, r, found[0], wait)
}

// answerAuthorization answers with the state of an authorization, as soon as its outcome is known or the time is over.
func (a *API) answerAuthorization(w http.ResponseWriter, r *http.Request, found ledger.Authorization, wait time.Duration) error {
	if wait > 0 && AuthorizationStatus(found) == apitypes.AuthorizationUnknown {
		leave, err := a.waitingPayers.enterPayer(r.Context(), found.MerchantID, found.InvoiceID)
		if err != nil {
			return err
		}
		defer leave()
		if found, err = a.awaitAuthorization(w, r, found, wait); err != nil {
			return err
		}
	}
	return a.writeJSON(w, r, http.StatusOK, apitypes.AuthorizationResponse{Authorization: Authorization(found)}, nil)
}

// awaitAuthorization returns an authorization once its outcome is known, or the time is
// over, or the client or the service ends the request.
func (a *API) awaitAuthorization(w http.ResponseWriter, r *http.Request, known ledger.Authorization, wait time.Duration) (ledger.Authorization, error) {
	about := invoice.Invoice{ID: known.InvoiceID, MerchantID: known.MerchantID}
	err := a.await(w, r, wait, func(ctx context.Context) error {
		after, err := a.conf.Feed.Head(ctx)
		for err == nil {
			now, readErr := a.conf.Reader.Authorization(ctx, known.ID)
			if readErr != nil || AuthorizationStatus(now) != apitypes.AuthorizationUnknown {
				return readErr
			}
			after, err = a.nextAbout(ctx, about, after)
		}
		return err
	})
	if err != nil {
		return known, err
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), RequestTimeout)
	defer cancel()
	return a.conf.Reader.Authorization(last, known.ID)
}

// authorizationWait parses the parameter wait.
func (q *query) authorizationWait() time.Duration {
	text, ok := q.get("wait")
	if !ok {
		return 0
	}
	return time.Duration(q.waitSeconds(text, MaxAuthorizationWait)) * time.Second
}

// parseAuthorization parses the body of an authorization.
func parseAuthorization(o object) (a invoice.Authorization, err error) {
	err = cmp.Or(
		text(o, "", "from", &a.From, chain.ParseAddress),
		text(o, "", "to", &a.To, chain.ParseAddress),
		text(o, "", "value", &a.Value, invoice.ParseAmount),
		seconds(o, "validAfter", &a.ValidAfter),
		seconds(o, "validBefore", &a.ValidBefore),
		text(o, "", "nonce", &a.Nonce, invoice.ParseHash),
		text(o, "", "signature", &a.Signature, invoice.ParseAuthorizationSignature),
	)
	return a, err
}

// AuthorizationStatus returns the outcome of an authorization, as far as it is known.
func AuthorizationStatus(a ledger.Authorization) apitypes.AuthorizationStatus {
	switch {
	case a.Paid():
		return apitypes.AuthorizationPaid
	case a.Status == ledger.AuthorizationRefused:
		return apitypes.AuthorizationRefused
	}
	return apitypes.AuthorizationUnknown
}

// Authorization returns an authorization with its outcome.
func Authorization(a ledger.Authorization) apitypes.Authorization {
	w := apitypes.Authorization{
		ID: a.ID, InvoiceID: a.InvoiceID, ChainKey: a.ChainKey, From: chain.Checksum(a.From), To: chain.Checksum(a.To),
		Value: a.Value.String(), ValidBefore: a.ValidBefore.Unix(), Nonce: a.Nonce.String(), Status: AuthorizationStatus(a),
		CreatedAt: a.CreatedAt.Unix(),
	}
	switch w.Status {
	case apitypes.AuthorizationPaid:
		w.PaymentID, w.TxHash, w.PaymentStatus = a.Payment.ID, a.Payment.TxHash.String(), apitypes.PaymentStatus(a.Payment.Status.Shown())
	case apitypes.AuthorizationRefused:
		w.Reason, w.Detail = string(a.Reason), a.Reason.Detail()
	case apitypes.AuthorizationUnknown:
		w.Detail = "Do not sign again: this authorization may still be carried out. The outcome is certain soon after validBefore at the latest."
	}
	return w
}
