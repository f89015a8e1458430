package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/web/webpage"
	"github.com/quittance/quittance/internal/webhooks"
)

// VerifyTimeout bounds a verification of the audit log.
const VerifyTimeout = ReportTimeout

// Operations is the operator's view of the service, and the operator's actions on it.
type Operations interface {
	// ServiceStatus returns the state of the process. It does not call a node.
	ServiceStatus(ctx context.Context) (apitypes.ServiceStatus, error)
	// Rescan schedules blocks of a chain to be read again; see ledger.Service.
	Rescan(ctx context.Context, chainKey string, from uint64) (ledger.Gap, error)
	// Cursor returns how far a chain is read.
	Cursor(ctx context.Context, chainKey string) (ledger.Progress, error)
	// Resume ends a chain's halt.
	Resume(ctx context.Context, chainKey string) error
	// VerifyAudit reads the whole audit log and returns its head; see db.DB.
	VerifyAudit(ctx context.Context, heads ...access.Head) (access.Head, error)
	// CountMerchant counts the objects of a merchant.
	CountMerchant(ctx context.Context, merchantID string, now time.Time) (MerchantCounts, error)
}

// operatorRoutes returns the routes of the operator.
func (a *API) operatorRoutes() []webpage.Route {
	return []webpage.Route{
		a.route("GET /api/operator/status", access.EventsRead, forOperator(a.serviceStatus)),
		a.route("GET /api/operator/merchants", access.EventsRead, forOperator(a.listMerchantOverviews), webpage.Takes(ofPage)),
		a.route("POST /api/operator/chains/{chainKey}/rescan", access.KeysWrite, forOperator(taking[apitypes.RescanRequest](a.rescanChain))),
		a.route("POST /api/operator/chains/{chainKey}/resume", access.KeysWrite, forOperator(a.resumeChain)),
		a.route("POST /api/operator/mails/report", access.InvoicesWrite, forOperator(a.reportMail), webpage.BodyUpTo(mailer.MaxReport, 0)),
		a.route("POST /api/operator/audit/verify", access.EventsRead, forOperator(taking[apitypes.VerifyAuditRequest](a.verifyAudit)), webpage.Long),
	}
}

// forOperator returns h for keys of the operator.
func forOperator(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if !access.FromContext(r.Context()).IsOperator() {
			return errNotOperator
		}
		return h(w, r)
	}
}

// errNotOperator is the error of a request that only the operator may make.
var errNotOperator = problemf(apitypes.CodeForbidden, "This wants a key of the operator.")

// serviceStatus answers GET /api/operator/status.
func (a *API) serviceStatus(w http.ResponseWriter, r *http.Request) error {
	status, err := a.conf.Operations.ServiceStatus(r.Context())
	return a.writeJSON(w, r, http.StatusOK, status, err)
}

// chainOf returns the chain that the path names.
func (a *API) chainOf(r *http.Request) (string, error) {
	key := r.PathValue("chainKey")
	if _, ok := a.chains[key]; !ok {
		return "", problemf(apitypes.CodeNotFound, "The service is not configured with this chain.")
	}
	return key, nil
}

// rescanChain answers POST /api/operator/chains/{chainKey}/rescan.
func (a *API) rescanChain(w http.ResponseWriter, r *http.Request, o object) error {
	chainKey, err := a.chainOf(r)
	if err != nil {
		return err
	}
	from, err := strconv.ParseUint(fmt.Sprint(o["from"]), 10, 63)
	if _, quoted := o["from"].(string); err != nil || quoted {
		return invalidField("from", "must be the number of a block")
	}
	gap, err := a.conf.Operations.Rescan(r.Context(), chainKey, from)
	return a.writeJSON(w, r, http.StatusOK, apitypes.RescanResponse{ChainKey: chainKey, From: int64(gap.Next), To: int64(gap.Last)}, err)
}

// resumeChain answers POST /api/operator/chains/{chainKey}/resume.
func (a *API) resumeChain(w http.ResponseWriter, r *http.Request) error {
	chainKey, err := a.chainOf(r)
	if err != nil {
		return err
	}
	cur, err := a.conf.Operations.Cursor(r.Context(), chainKey)
	if err == nil {
		err = a.conf.Operations.Resume(r.Context(), chainKey)
	}
	return a.writeJSON(w, r, http.StatusOK, apitypes.ResumeResponse{ChainKey: chainKey, Halted: cur.Halted}, err)
}

// verifyAudit answers POST /api/operator/audit/verify.
func (a *API) verifyAudit(w http.ResponseWriter, r *http.Request, o object) error {
	var heads []access.Head // expected in the log
	err := optional(o, "head", func(name string) error {
		heads = make([]access.Head, 1)
		return text(o, "", name, &heads[0], access.ParseHead)
	})
	if err != nil {
		return err
	}
	var answer apitypes.AuditVerification
	err = a.makeReport(w, r, func(ctx context.Context) error {
		head, err := a.conf.Operations.VerifyAudit(ctx, heads...)
		if fault := (*access.FaultError)(nil); errors.As(err, &fault) {
			answer.Fault, err = &apitypes.AuditFault{Seq: fault.Seq, Damage: string(fault.Damage), Detail: fault.Detail}, nil
		}
		answer.Head = head.String()
		return err
	})
	return a.writeJSON(w, r, http.StatusOK, answer, err)
}

// listMerchantOverviews answers GET /api/operator/merchants.
func (a *API) listMerchantOverviews(w http.ResponseWriter, r *http.Request) error {
	return a.serveMerchants(w, r, "merchant overviews", func(ctx context.Context, rows []invoice.Merchant) (out []any, err error) {
		for i := 0; err == nil && i < len(rows); i++ {
			var overview apitypes.MerchantOverview
			overview, err = a.overviewOf(ctx, rows[i])
			out = append(out, overview)
		}
		return out, err
	})
}

// overviewOf returns a merchant with the counts of its objects.
func (a *API) overviewOf(ctx context.Context, m invoice.Merchant) (apitypes.MerchantOverview, error) {
	n, err := a.conf.Operations.CountMerchant(ctx, m.ID, a.conf.Now())
	if err != nil {
		return apitypes.MerchantOverview{}, err
	}
	view, err := a.conf.Endpoints.View(ctx, m.ID)
	if err != nil && !errors.Is(err, webhooks.ErrNone) {
		return apitypes.MerchantOverview{}, err
	}
	shown := apiconv.Merchant(m)
	o := apitypes.MerchantOverview{
		ID: shown.ID, Name: shown.Name, Source: string(shown.Source), OpenInvoices: n.OpenInvoices, PendingEvents: n.PendingEvents, FailedEvents: n.FailedEvents,
		ActiveKeys: n.ActiveKeys, Endpoint: string(view.Breaker.Health(a.conf.Now())),
	}
	if err != nil {
		o.Endpoint = "none"
	}
	if b := view.Breaker; b.Failures > 0 {
		o.EndpointFailingSince, o.EndpointError = invoice.UnixSeconds(b.Failing), b.Error
	}
	return o, nil
}
