package dashboard

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
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
	rows: func(list apitypes.ApprovalList) ([]apitypes.Approval, string) {
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
	if a.For != "" {
		view.Facts = append(view.Facts, approvalFact{"approval.for", found.Approval.RequestedBy + " (" + a.For + ")"})
	}
	for _, vote := range found.Votes {
		if vote.Counts && vote.Approves {
			view.Count++
		}
	}
	own := found.Approval.MerchantID == v.principal.MerchantID && ended(found.Approval) == 0
	view.MayVote = own && v.session.PersonID != "" && access.MayApprove(v.principal.Scopes)
	view.MayUse = own && found.Approval.State == apitypes.ApprovalApproved && v.Can(usersOf[found.Approval.Kind]) && v.mayReceive(a)
	return d.render(w, r, http.StatusOK, "approval.html", "approval.title", view)
}

// mayReceive reports whether an action has no secret for somebody else.
func (v *visit) mayReceive(a action) bool { return a.For == "" || a.For == v.principal.Holder() }

// usersOf has the scope by which an approved action of each kind is carried out.
var usersOf = map[apitypes.ApprovalKind]access.Scope{
	apitypes.ApprovalOfRefund: access.InvoicesWrite, apitypes.ApprovalOfAttribution: access.AttributionWrite, apitypes.ApprovalOfAddresses: access.KeysWrite,
	apitypes.ApprovalOfKey: access.KeysWrite, apitypes.ApprovalOfMember: access.KeysWrite, apitypes.ApprovalOfPolicy: access.KeysWrite,
}

// action is the action of a request for approval, of every kind.
type action struct {
	PaymentID string `json:"paymentId"`
	RefundID  string `json:"refundId"`
	InvoiceID string `json:"invoiceId"`
	ChainKey  string `json:"chainKey"`
	Currency  string `json:"currency"`
	Amount    string `json:"amount"`
	Sum       string `json:"sum"`
	To        string `json:"to"`
	Reason    string `json:"reason"`
	Email     string `json:"email"`
	Name      string `json:"name"`
	Scopes    string `json:"scopes"`
	ExpiresAt int64  `json:"expiresAt"`
	Replaces  string `json:"replaces"`
	Overlap   int64  `json:"overlapSeconds"`
	For       string `json:"for"` // who receives the secret of a key

	DefaultAddresses map[string]string    `json:"defaultAddresses"`
	AllowedAddresses []string             `json:"allowedAddresses"` // chain key, space, address
	WasDefaults      map[string]string    `json:"wasDefaultAddresses"`
	WasAllowed       []string             `json:"wasAllowedAddresses"`
	Policy           *access.PolicyChange `json:"-"` // of a request to change it
}

// approvalOf returns the request for approval in the path, and its action.
func (d *Dashboard) approvalOf(r *http.Request) (found apitypes.ApprovalResponse, a action, err error) {
	if err = d.service.get(r.Context(), id("/api/approvals", r.PathValue("id")), nil, &found); err == nil {
		err = json.Unmarshal([]byte(found.Approval.Subject), &a)
	}
	if err == nil && found.Approval.Kind == apitypes.ApprovalOfPolicy {
		err = json.Unmarshal([]byte(found.Approval.Subject), &a.Policy)
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
	add := func(label, text string) {
		if text != "" {
			facts = append(facts, approvalFact{label, text})
		}
	}
	if a.Amount != "" {
		facts = append(facts, approvalFact{"invoices.amount", v.money(a.Amount, a.Currency)})
		add("invoices.network", v.Network(a.ChainKey))
	}
	if a.To == ledger.AskPayer {
		a.To = v.text.T("refund.ask", nil)
	}
	add("refundForm.to", a.To)
	if a.Sum != "" && a.Sum != a.Amount {
		facts = append(facts, approvalFact{"approval.sum", v.money(a.Sum, a.Currency)})
	}
	add("inbox.reason", a.Reason)
	add("payment.title", a.PaymentID)
	add("refund.title", a.RefundID)
	add("payments.invoice", a.InvoiceID)
	add("keys.name", a.Name)
	add("signIn.email", a.Email)
	add("keys.allows", a.Scopes)
	if a.ExpiresAt != 0 {
		add("invoice.expires", v.text.ClockIn(time.Unix(a.ExpiresAt, 0), v.Zone()))
	}
	if add("keys.key", a.Replaces); a.Replaces != "" {
		overlap := strconv.FormatInt(a.Overlap, 10) + " s"
		for _, s := range overlaps {
			if s.Seconds == a.Overlap {
				overlap = v.text.T(s.Text, nil)
			}
		}
		add("keys.overlap", overlap)
	}
	if a.DefaultAddresses != nil {
		for _, text := range changesOf(v.addressesOf(a.WasDefaults), v.addressesOf(a.DefaultAddresses)) {
			add("settings.defaults", text)
		}
	}
	if a.AllowedAddresses != nil {
		for _, text := range changesOf(a.WasAllowed, a.AllowedAddresses) {
			add("settings.addresses", text)
		}
	}
	if p := a.Policy; p != nil {
		mark := map[bool]string{true: "✓", false: "–"}
		change := func(label, was, is string) { add(label, strings.Join(slices.Compact([]string{was, is}), " → ")) }
		change("approvals.people", strconv.Itoa(p.Was.People), strconv.Itoa(p.People))
		change("approvals.refundsAbove", v.limit(p.Was.RefundsAbove), v.limit(p.RefundsAbove))
		change("approvals.attributionsAbove", v.limit(p.Was.AttributionsAbove), v.limit(p.AttributionsAbove))
		change("approvals.addresses", mark[p.Was.Addresses], mark[p.Addresses])
		change("approvals.keys", mark[p.Was.Keys], mark[p.Keys])
	}
	return facts
}

// addressesOf returns the texts of default addresses, in order.
func (v *visit) addressesOf(defaults map[string]string) []string {
	return db.Each(slices.Sorted(maps.Keys(defaults)), func(key string) string { return v.Network(key) + " " + defaults[key] })
}

// changesOf returns the texts of two lists: first those that are added, then those that end, then those that stay.
func changesOf(was, is []string) (texts []string) {
	var stay []string
	for _, text := range is {
		if slices.Contains(was, text) {
			stay = append(stay, text)
		} else {
			texts = append(texts, "+ "+text)
		}
	}
	for _, text := range was {
		if !slices.Contains(is, text) {
			texts = append(texts, "− "+text)
		}
	}
	return append(texts, stay...)
}

// limit returns a limit of minor units in units of a currency. Without one it is unlimited.
func (v *visit) limit(amount invoice.Amount) string {
	if amount == invoice.MaxAmount {
		return v.text.T("operator.unlimited", nil)
	}
	return v.major(amount.String())
}

// vote records the person's vote, and shows the request.
func (d *Dashboard) vote(w http.ResponseWriter, r *http.Request) error {
	found, _, err := d.approvalOf(r)
	if err != nil {
		return err
	}
	v, vote := visitOf(r), r.PostFormValue("vote")
	if vote != "approve" && vote != "refuse" {
		return errForm
	}
	return d.redirect(w, r, d.cfg.Sessions.Vote(r.Context(), v.session, v.principal, found.Approval.ID, vote == "approve"), id(pathApprovals, found.Approval.ID))
}

// useApproval carries out the action of a request for approval, which uses the approval up.
func (d *Dashboard) useApproval(w http.ResponseWriter, r *http.Request) error {
	found, a, err := d.approvalOf(r)
	v := visitOf(r)
	switch of := found.Approval; {
	case err != nil:
		return err
	case of.MerchantID != v.principal.MerchantID, !v.mayReceive(a): // the operator needs no approval, and would not use it up
		return errForbidden
	case of.State != apitypes.ApprovalApproved:
		return access.ErrApprovalEnded
	}
	switch ctx, kind := r.Context(), found.Approval.Kind; {
	case kind == apitypes.ApprovalOfRefund && a.RefundID != "":
		err := d.service.send(ctx, http.MethodPost, id("/api/refunds", a.RefundID)+"/approve", apitypes.ApproveRefundRequest{To: a.To}, nil)
		return d.redirect(w, r, err, id("/dashboard/refunds", a.RefundID))
	case kind == apitypes.ApprovalOfAttribution:
		asked := apitypes.AttributePaymentRequest{InvoiceID: a.InvoiceID, By: v.Name(), Note: a.Reason}
		err := d.service.send(ctx, http.MethodPost, id("/api/payments", a.PaymentID)+"/attribution", asked, nil)
		return d.redirect(w, r, err, id("/dashboard/payments", a.PaymentID))
	case kind == apitypes.ApprovalOfRefund:
		var made apitypes.RefundResponse
		asked := apitypes.PrepareRefundRequest{Amount: a.Amount, To: a.To, Reason: a.Reason}
		if err := d.service.send(ctx, http.MethodPost, id("/api/payments", a.PaymentID)+"/refunds", asked, &made); err != nil {
			return err
		}
		return d.showPrepared(w, r, made)
	case kind == apitypes.ApprovalOfMember:
		return d.invite(w, r, keyForm{For: forPerson, Name: a.Name, Email: a.Email, Role: a.role()})
	case kind == apitypes.ApprovalOfKey:
		return d.makeApprovedKey(w, r, a)
	case kind == apitypes.ApprovalOfPolicy:
		return d.changePolicy(w, r, a.Policy.ApprovalPolicy)
	case kind == apitypes.ApprovalOfAddresses:
		return d.changeMerchant(w, r, a.addresses(), nil)
	}
	return errNotFound
}

// makeApprovedKey makes the key of an approved request, and shows its secret.
func (d *Dashboard) makeApprovedKey(w http.ResponseWriter, r *http.Request, a action) error {
	path, asked := "/api/keys", any(apitypes.CreateKeyRequest{Name: a.Name, Scopes: strings.Fields(a.Scopes), ExpiresAt: a.ExpiresAt})
	if a.Replaces != "" {
		path, asked = id("/api/keys", a.Replaces)+"/rotate", apitypes.RotateKeyRequest{OverlapSeconds: &a.Overlap}
	}
	var made apitypes.KeySecretResponse
	if err := d.service.send(r.Context(), http.MethodPost, path, asked, &made); err != nil {
		return err
	}
	return d.render(w, r, http.StatusOK, "keymade.html", "keyMade.title", keyMade{Key: made.Key, Secret: made.Secret, Rotated: a.Replaces != ""})
}

// addresses returns the change of addresses.
func (a action) addresses() (change apitypes.UpdateMerchantRequest) {
	change.DefaultAddresses = a.DefaultAddresses
	for _, text := range a.AllowedAddresses {
		key, address, _ := strings.Cut(text, " ")
		change.AllowedAddresses = append(change.AllowedAddresses, apitypes.AllowedAddress{ChainKey: key, Address: address})
	}
	return change
}

// setApprovalPolicy sets the policy of the form.
func (d *Dashboard) setApprovalPolicy(w http.ResponseWriter, r *http.Request) error {
	policy := access.ApprovalPolicy{Addresses: r.PostFormValue("addresses") != "", Keys: r.PostFormValue("keys") != ""}
	people, err := strconv.Atoi(strings.TrimSpace(r.PostFormValue("people")))
	for name, limit := range map[string]*invoice.Amount{"refundsAbove": &policy.RefundsAbove, "attributionsAbove": &policy.AttributionsAbove} {
		*limit = invoice.MaxAmount
		if typed := strings.TrimSpace(r.PostFormValue(name)); typed != "" && err == nil {
			*limit, err = webpage.ParseAmount(typed, visitOf(r).text.Lang(), chain.TokenDecimals)
		}
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
	return d.redirect(w, r, err, "/dashboard/settings")
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
type policyForm struct {
	People, RefundsAbove, AttributionsAbove string
	Addresses, Keys                         bool
}

// policyForm returns the form of the policy of a visit's merchant, with the values of a refused form.
func (d *Dashboard) policyForm(r *http.Request, refused string) (policyForm, error) {
	v := visitOf(r)
	policy, err := d.cfg.Sessions.ApprovalPolicy(r.Context(), v.principal, v.merchant)
	limit := func(amount invoice.Amount) string {
		if policy.People == 0 || amount == invoice.MaxAmount {
			return ""
		}
		return v.limit(amount)
	}
	form := policyForm{strconv.Itoa(policy.People), limit(policy.RefundsAbove), limit(policy.AttributionsAbove), policy.Addresses, policy.Keys}
	if typed := r.PostForm; refused != "" && typed.Has("people") {
		form = policyForm{typed.Get("people"), typed.Get("refundsAbove"), typed.Get("attributionsAbove"), typed.Has("addresses"), typed.Has("keys")}
	}
	return form, err
}
