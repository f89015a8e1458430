package dashboard

import (
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/web/webpage"
)

// pathApprovals is the path of the requests for approval.
const pathApprovals = "/dashboard/approvals"

// approvalRoutes returns the routes of approvals by several people.
func (d *Dashboard) approvalRoutes() []webpage.Route {
	settings := func(r *http.Request) string { return visitOf(r).Link("/dashboard/settings") }
	return []webpage.Route{
		d.route("GET "+pathApprovals, access.EventsRead, approvalList.show(d)),
		d.route("GET "+pathApprovals+"/{id}", access.EventsRead, d.approval),
		d.route("POST "+pathApprovals+"/{id}/vote", access.AttributionWrite, d.confirmed(d.vote, here("/vote"))),
		d.route("POST "+pathApprovals+"/{id}/use", access.EventsRead, d.confirmed(d.useApproval, here("/use"))),
		d.route("POST "+pathApprovals, access.KeysWrite, d.confirmed(d.setApprovalPolicy, settings)),
	}
}

// approvalList lists requests for approval, the open ones of a page first.
var approvalList = lister[apitypes.ApprovalList, apitypes.Approval]{
	page: pathApprovals, api: "/api/approvals", template: "approvals.html", title: "approvals.title",
	filters: []filter{{name: "state", text: "invoices.status", kind: "select", options: optionsOf("approval.state", access.ApprovalStates)}},
	rows: func(_ *visit, list apitypes.ApprovalList) ([]apitypes.Approval, string) {
		slices.SortStableFunc(list.Approvals, func(a, b apitypes.Approval) int { return ended(a) - ended(b) })
		return list.Approvals, list.NextCursor
	},
}

// ended returns 0 for an open request, and otherwise 1.
func ended(a apitypes.Approval) int {
	if a.State == apitypes.ApprovalRequested || a.State == apitypes.ApprovalApproved {
		return 0
	}
	return 1
}

// approvalView is the page of a request for approval.
type approvalView struct {
	apitypes.ApprovalResponse
	Facts   []approvalFact
	Count   int  // of approvals
	MayVote bool // the person may vote
	MayUse  bool // the action can be carried out
}

// approvalFact is a part of the action that is to be approved.
type approvalFact struct {
	Label string // id of a text
	Value any
}

// approval shows a request for approval, and what the person may do about it.
func (d *Dashboard) approval(w http.ResponseWriter, r *http.Request) error {
	found, a, err := d.approvalOf(r)
	if err != nil {
		return err
	}
	v, view := visitOf(r), approvalView{ApprovalResponse: found}
	view.Facts = v.approvalFacts(a)
	for _, vote := range found.Votes {
		if vote.Counts && vote.Approves {
			view.Count++
		}
	}
	own := found.Approval.MerchantID == v.principal.MerchantID && ended(found.Approval) == 0
	view.MayVote = own && v.session.PersonID != "" && access.MayApprove(v.principal.Scopes)
	view.MayUse = own && found.Approval.State == apitypes.ApprovalApproved && view.Count >= found.Approval.People
	return d.render(w, r, http.StatusOK, "approval.html", "approval.title", view)
}

// action is the action of a request for approval, of every kind.
type action struct {
	Amount, Currency, ChainKey, To, Reason, PaymentID, RefundID, Name, Email, Scopes string
	access.ApprovalPolicy
}

// approvalOf returns the request for approval in the path, and its action.
func (d *Dashboard) approvalOf(r *http.Request) (found apitypes.ApprovalResponse, a action, err error) {
	if err = d.service.get(r.Context(), id("/api/approvals", r.PathValue("id")), nil, &found); err == nil {
		err = json.Unmarshal([]byte(found.Approval.Subject), &a)
	}
	return found, a, err
}

// role returns the role that has the scopes, or "".
func (a action) role() string {
	scopes, err := access.ParseScopes(strings.Fields(a.Scopes))
	if err != nil {
		return ""
	}
	return scopes.Role()
}

// approvalFacts returns the parts of an action in the order in which people read them.
func (v *visit) approvalFacts(a action) (facts []approvalFact) {
	var money, people template.HTML
	if a.Amount != "" {
		money = v.money(a.Amount, a.Currency, a.ChainKey)
	}
	limit := ""
	if a.PaymentID == "" && a.Email == "" {
		people, limit = template.HTML(strconv.Itoa(a.People)), v.limit(a.RefundsAbove) //nolint:gosec // a number
	}
	if a.To == ledger.AskPayer {
		a.To = v.text.T("refund.ask", nil)
	}
	all := []approvalFact{
		{"invoices.amount", money},
		{"invoices.network", v.Network(a.ChainKey)},
		{"refundForm.to", a.To},
		{"inbox.reason", a.Reason},
		{"payment.title", a.PaymentID},
		{"refund.title", a.RefundID},
		{"keys.name", a.Name},
		{"signIn.email", a.Email},
		{"keys.allows", a.Scopes},
		{"approvals.people", people},
		{"approvals.refundsAbove", limit},
	}
	return slices.DeleteFunc(all, func(f approvalFact) bool { return f.Value == "" || f.Value == template.HTML("") })
}

// limit returns a limit of minor units in units of a currency. Without one it is unlimited.
func (v *visit) limit(amount invoice.Amount) string {
	if amount == invoice.MaxAmount {
		return v.text.T("operator.unlimited", nil)
	}
	return v.text.Number(amount.Major(chain.TokenDecimals))
}

// vote records the person's vote, and shows the request.
func (d *Dashboard) vote(w http.ResponseWriter, r *http.Request) error {
	found, _, err := d.approvalOf(r)
	if err != nil {
		return err
	}
	if err := parseForm(w, r); err != nil {
		return err
	}
	v := visitOf(r)
	if err := d.cfg.Sessions.Vote(r.Context(), v.session, v.principal, found.Approval.ID, r.PostFormValue("vote") == "approve"); err != nil {
		return err
	}
	d.redirect(w, r, id(pathApprovals, found.Approval.ID))
	return nil
}

// useApproval carries out the action of a request for approval, which uses the approval up.
func (d *Dashboard) useApproval(w http.ResponseWriter, r *http.Request) error {
	found, a, err := d.approvalOf(r)
	switch of := found.Approval; {
	case err != nil:
		return err
	case of.MerchantID != visitOf(r).principal.MerchantID: // the operator needs no approval, and would not use it up
		return errForbidden
	case of.State != apitypes.ApprovalApproved:
		return access.ErrApprovalEnded
	}
	switch ctx := r.Context(); {
	case a.RefundID != "":
		if err := d.service.send(ctx, http.MethodPost, id("/api/refunds", a.RefundID)+"/approve", apitypes.ApproveRefundRequest{To: a.To}, nil); err != nil {
			return err
		}
		d.redirect(w, r, id("/dashboard/refunds", a.RefundID))
	case a.PaymentID != "":
		var made apitypes.RefundResponse
		asked := apitypes.PrepareRefundRequest{Amount: a.Amount, To: a.To, Reason: a.Reason}
		if err := d.service.create(ctx, id("/api/payments", a.PaymentID)+"/refunds", found.Approval.ID, asked, &made); err != nil {
			return err
		}
		return d.showPrepared(w, r, made)
	case a.Email != "":
		return d.invite(w, r, keyForm{For: forPerson, Name: a.Name, Email: a.Email, Role: a.role()})
	default:
		return d.changePolicy(w, r, a.ApprovalPolicy)
	}
	return nil
}

// setApprovalPolicy sets the policy of the form.
func (d *Dashboard) setApprovalPolicy(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	policy := access.ApprovalPolicy{RefundsAbove: invoice.MaxAmount}
	people, err := strconv.Atoi(strings.TrimSpace(r.PostFormValue("people")))
	if typed := strings.TrimSpace(r.PostFormValue("refundsAbove")); typed != "" && err == nil {
		policy.RefundsAbove, err = webpage.ParseAmount(typed, visitOf(r).text.Lang(), chain.TokenDecimals)
	}
	if policy.People = people; err != nil {
		policy.People = -1 // no number of people
	}
	return d.changePolicy(w, r, policy)
}

// changePolicy sets the policy of the visit's merchant, and shows the settings.
func (d *Dashboard) changePolicy(w http.ResponseWriter, r *http.Request, policy access.ApprovalPolicy) error {
	v := visitOf(r)
	err := d.cfg.Sessions.SetApprovalPolicy(r.Context(), v.principal, v.merchant, policy)
	if errors.As(err, new(*invoice.FieldError)) {
		return d.showSettings(w, r, http.StatusBadRequest, v.text.T("approvals.error", nil), nil)
	}
	if err == nil {
		d.redirect(w, r, "/dashboard/settings")
	}
	return err
}

// approvalPage returns the page of the request for approval that an error names, or "".
func (v *visit) approvalPage(err error) string {
	var refused *problem
	var required *access.ApprovalRequiredError
	switch {
	case errors.As(err, &refused) && refused.ApprovalID != "":
		return v.Link(id(pathApprovals, refused.ApprovalID))
	case errors.As(err, &required):
		return v.Link(id(pathApprovals, required.Request.ID))
	}
	return ""
}

// policyForm is the policy of approvals as its form shows it.
type policyForm struct{ People, RefundsAbove string }

// policyForm returns the form of the policy of a visit's merchant, with the values of a refused form.
func (d *Dashboard) policyForm(r *http.Request, refused string) (form policyForm, err error) {
	v := visitOf(r)
	policy, err := d.cfg.Sessions.ApprovalPolicy(r.Context(), v.principal, v.merchant)
	form.People = strconv.Itoa(policy.People)
	if policy.People > 0 && policy.RefundsAbove != invoice.MaxAmount {
		form.RefundsAbove = v.limit(policy.RefundsAbove)
	}
	if refused != "" && r.PostForm.Has("people") {
		form = policyForm{r.PostForm.Get("people"), r.PostForm.Get("refundsAbove")}
	}
	return form, err
}
