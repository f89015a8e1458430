package dashboard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/web/checkout/locale"
	"github.com/quittance/quittance/internal/web/webpage"
)

// Limits of mails that the dashboard sends.
const (
	MailWindow            = 10 * time.Minute
	MailsOfPerson         = 3  // of one kind to one address, in MailWindow; about approvals 1 in access.ApprovalNoticePause
	MailsOfClient         = 20 // that one client network asks for, in MailWindow
	MailDay               = 24 * time.Hour
	MailsOfPersonADay     = 20  // of one kind to one address, in MailDay, except those of the person's own session
	InvitationsOfMerchant = 100 // of a merchant or of the operator, with those that are withdrawn, in MailDay
	maxMailed             = 50_000
)

// mailKind is the kind of a mail. Mails of one kind do not use up the limits of another, so that strangers
// who ask for sign-ins keep a person neither from confirming nor from being invited.
type mailKind string

const (
	toSignIn  mailKind = "sign-in" // that anybody can ask for
	toConfirm mailKind = "confirm" // in a session of the person
	toJoin    mailKind = "join"
	toApprove mailKind = "approve" // about requests for approval of all merchants
)

// mailed is an address that gets mails of a kind.
type mailed struct {
	kind     mailKind
	email    string
	merchant string // of a request for approval, or empty
}

// mailLimits count mails by address and by client network, and invitations by merchant.
type mailLimits struct {
	people, days *limits.Buckets[mailed] // days has those of a day
	clients      limits.NetworkBuckets
	merchants    *limits.Buckets[string]
	signIns      limits.NetworkBuckets // by passkey, that begin, or by a provider, that end
}

func newMailLimits(now func() time.Time) mailLimits {
	in := func(name string, quota int, window time.Duration) limits.Limit {
		return limits.Limit{Name: name, Quota: quota, Window: window}
	}
	return mailLimits{
		people:    limits.NewBuckets[mailed](in("mails", MailsOfPerson, MailWindow), maxMailed, now),
		days:      limits.NewBuckets[mailed](in("mails", MailsOfPersonADay, MailDay), maxMailed, now),
		clients:   limits.NewNetworkBuckets(in("mails", MailsOfClient, MailWindow), maxMailed, now),
		merchants: limits.NewBuckets[string](in("invitations", InvitationsOfMerchant, MailDay), maxMailed, now),
		signIns:   limits.NewNetworkBuckets(in("sign-ins", SignInsOfClient, MailWindow), maxMailed, now),
	}
}

// take counts a mail to an address that a request causes. The error is a *limits.ExceededError.
func (l mailLimits) take(ctx context.Context, kind mailKind, email string) error {
	if err := l.clients.Take(ctx); err != nil {
		return err
	}
	to := mailed{kind: kind, email: email}
	if err := l.people.Take(to).Err(); err != nil {
		return err
	}
	if kind == toConfirm {
		return nil
	}
	err := l.days.Take(to).Err()
	if err != nil {
		l.people.Return(to)
	}
	return err
}

// peopleRoutes returns the routes of sign-in by mail and of invitations.
func (d *Dashboard) peopleRoutes() []webpage.Route {
	back := func(r *http.Request) string { return visitOf(r).Link("/dashboard/keys") }
	return []webpage.Route{
		d.route("POST /dashboard/sign-in/mail", "", d.mailSignIn, webpage.Open),
		d.route("GET /dashboard/invitation", "", d.invitationPage, webpage.Open),
		d.route("POST /dashboard/invitation", "", d.acceptInvitation, webpage.Open),
		d.route("POST /dashboard/invitations/{id}/withdraw", access.KeysWrite, d.confirmed(d.withdrawInvitation, back)),
	}
}

// mailSignIn sends a link that signs in to an address, if a person has it. The answer does not depend on
// that, and neither does its time.
func (d *Dashboard) mailSignIn(w http.ResponseWriter, r *http.Request) error {
	if d.cfg.Mail == nil {
		return errNotFound
	}
	email, err := mailer.Address(strings.TrimSpace(r.PostFormValue("email")))
	if err != nil {
		return d.refuseSignIn(w, r, http.StatusBadRequest, "signIn.error.email")
	}
	kind, err := d.mailKind(r, email)
	if err != nil {
		return err
	}
	if err := d.mails.take(r.Context(), kind, email); err != nil {
		return err
	}
	form := d.signInForm(r)
	if err := d.cfg.Mail.Queue(d.signInMail(visitOf(r), access.OriginFrom(r.Context()), email, form.Next)); err != nil {
		return errBusy
	}
	form.Sent = true
	return d.render(w, r, http.StatusOK, "signin.html", "signIn.title", form)
}

// mailKind returns the kind of a mail that signs in: toConfirm to the person of the request's session.
func (d *Dashboard) mailKind(r *http.Request, email string) (mailKind, error) {
	s, _, err := d.findSession(r)
	if errors.Is(err, access.ErrSignedOut) || err == nil && s.PersonID == "" {
		return toSignIn, nil
	}
	if err != nil {
		return "", err
	}
	person, err := d.cfg.Sessions.PersonOf(r.Context(), s)
	if err == nil && person.Email == email {
		return toConfirm, nil
	}
	return toSignIn, err
}

// signInMail returns a function that sends a link to an address, if a person has it.
func (d *Dashboard) signInMail(v *visit, origin access.Origin, email, next string) func(context.Context) error {
	return func(ctx context.Context) error {
		link, err := d.cfg.Sessions.MailLink(access.WithOrigin(ctx, origin), email)
		if errors.Is(err, db.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		return d.mail(ctx, v, email, "mail.signIn", "/dashboard/sign-in?"+url.Values{"link": {link.Token}, "next": {next}}.Encode(), nil)
	}
}

// mail sends a mail with a link to a page.
func (d *Dashboard) mail(ctx context.Context, v *visit, email, kind, page string, values map[string]any) error {
	base, err := url.Parse(d.cfg.URL)
	if err != nil {
		return err
	}
	all := map[string]any{"Host": base.Host}
	maps.Copy(all, values)
	m, err := letter(v.text, kind, d.cfg.URL+page, all)
	if err != nil {
		return err
	}
	return d.cfg.Mail.Send(ctx, email, m)
}

// invite invites a person by mail.
func (d *Dashboard) invite(w http.ResponseWriter, r *http.Request, form keyForm) error {
	if d.cfg.Mail == nil { // it was configured when the invitation was approved
		return errNotFound
	}
	v := visitOf(r)
	again := func(id string) error {
		form.Error = v.text.T(id, nil)
		return d.showKeyForm(w, r, http.StatusBadRequest, form)
	}
	email, err := mailer.Address(strings.TrimSpace(form.Email))
	if err != nil {
		return again("signIn.error.email")
	}
	scopes, err := access.ParseScopes([]string{form.Role})
	if err != nil {
		return errForm
	}
	if err := d.mails.merchants.Take(v.merchant).Err(); err != nil {
		return err
	}
	if err := d.mails.take(r.Context(), toJoin, email); err != nil {
		return err
	}
	ctx := r.Context()
	_, token, err := d.cfg.Sessions.Invite(ctx, v.principal, access.Invitation{Email: email, Name: form.Name, MerchantID: v.merchant, Scopes: scopes})
	switch wrong := (*invoice.FieldError)(nil); {
	case errors.As(err, &wrong):
		return again("invite.error.name")
	case errors.Is(err, access.ErrTooManyInvitations):
		return again("invite.error.many")
	case errors.As(err, new(*access.ScopeError)):
		return errForbidden
	case err != nil:
		return err
	}
	values := map[string]any{"By": v.Name(), "Role": v.text.T("role."+form.Role, nil)}
	if name := v.MerchantName(); name != "" {
		values["Host"] = name
	}
	if err := d.mail(ctx, v, email, "mail.invite", "/dashboard/invitation?"+url.Values{"token": {token}}.Encode(), values); err != nil {
		d.cfg.Logger.ErrorContext(ctx, "e-mail of an invitation failed", "err", err)
		return again("invite.error.mail") // sent again, the invitation needs no other approval
	}
	return d.redirect(w, r, nil, "/dashboard/keys")
}

// invitationView is the page on which a person accepts an invitation.
type invitationView struct {
	access.Invitation
	Token string
	Role  string
}

// invitationPage shows an invitation. It is accepted only when the person presses the button, because
// programs open links in messages.
func (d *Dashboard) invitationPage(w http.ResponseWriter, r *http.Request) error {
	hideToken(w)
	token := r.FormValue("token")
	i, err := d.cfg.Sessions.Invitation(r.Context(), token)
	if err != nil {
		return err
	}
	return d.render(w, r, http.StatusOK, "invitation.html", "invitation.title", invitationView{i, token, i.Scopes.Role()})
}

// errInvitation is the error of an invitation that is unknown, used, withdrawn or too old.
var errInvitation = &pageError{Status: http.StatusNotFound, Title: "invitation.title", Text: "signIn.error.link"}

// acceptInvitation makes the person a member, and begins a session of a person who has no other membership.
func (d *Dashboard) acceptInvitation(w http.ResponseWriter, r *http.Request) error {
	s, _, err := d.findSession(r)
	if err != nil && !errors.Is(err, access.ErrSignedOut) {
		return err
	}
	p, token, err := d.cfg.Sessions.Accept(r.Context(), s, r.PostFormValue("token"), browserOf(r))
	if err != nil {
		return err
	}
	to := homeOf(p.MerchantID)
	if token != "" {
		d.setCookie(w, token)
	} else if s.PersonID != p.PersonID || p.IsOperator() { // the person must sign in
		to = "/dashboard/sign-in?" + url.Values{"next": {to}}.Encode()
	}
	return lead(w, r, to)
}

// withdrawInvitation deletes an invitation.
func (d *Dashboard) withdrawInvitation(w http.ResponseWriter, r *http.Request) error {
	v := visitOf(r)
	return d.redirect(w, r, d.cfg.Sessions.Uninvite(r.Context(), v.principal, v.merchant, r.PathValue("id")), "/dashboard/keys")
}

// letterHTML is a mail with a link.
var letterHTML = template.Must(template.New("").Parse(`<!doctype html><html lang="{{.Lang}}" dir="{{.Dir}}"><meta charset="utf-8"><title>{{.Subject}}</title>` +
	`<p>{{.Text}}</p><p><a href="{{.Link}}">{{.Link}}</a></p><p>{{.Hint}}</p></html>`))

// letter returns a mail with a link. Its texts have ids that begin with kind.
func letter(text *locale.Text, kind, link string, values map[string]any) (mailer.Message, error) {
	m := mailer.Message{Subject: text.T(kind+".subject", values)}
	parts := struct{ Lang, Dir, Subject, Text, Link, Hint string }{
		text.Lang(), text.Dir(), m.Subject, text.T(kind+".text", values), link, text.T(kind+".hint", values),
	}
	m.Text = fmt.Sprintf("%s\n\n%s\n\n%s\n", parts.Text, link, parts.Hint)
	var html bytes.Buffer
	err := letterHTML.Execute(&html, parts)
	m.HTML = html.String()
	return m, err
}

// noticeInterval is how often new requests for approval are looked for.
const noticeInterval = 10 * time.Second

// NotifyApprovers mails people about requests for approval until ctx ends, one at a time. So these mails take no places
// of mails that sign in. A mail that was sent when the process ends unexpectedly is sent again.
func (d *Dashboard) NotifyApprovers(ctx context.Context) {
	for d.cfg.Mail != nil && clock.Sleep(ctx, noticeInterval, nil) {
		for ctx.Err() == nil {
			err := d.notifyApprover(context.WithoutCancel(ctx))
			if errors.Is(err, db.ErrNotFound) {
				break
			}
			if err != nil {
				d.cfg.Logger.ErrorContext(ctx, "notices of requests for approval failed, will retry", "err", err)
				break
			}
		}
	}
}

// notifyApprover sends the next mail about requests for approval. One that fails, or is beyond the merchant's limit of
// a day, is due again later. A mail that a server answered counts for that limit, so that it is not repeated to a
// recipient without end. The error is db.ErrNotFound without one.
func (d *Dashboard) notifyApprover(ctx context.Context) error {
	due, err := d.cfg.Sessions.TakeApprovalNotices(ctx)
	to := func(n access.ApprovalNotice) mailed { return mailed{toApprove, n.Person.Email, n.MerchantID} }
	i := slices.IndexFunc(due, func(n access.ApprovalNotice) bool { return d.mails.days.Take(to(n)).OK })
	if err != nil || i < 0 {
		return err
	}
	n := due[i]
	page := pathApprovals
	if len(n.Approvals) == 1 {
		page = id(pathApprovals, n.Approvals[0])
	}
	v := &visit{text: texts().Named(n.Person.Language)} // English without a language
	err = d.mail(ctx, v, n.Person.Email, "mail.approve", page+"?"+url.Values{"merchantId": {n.MerchantID}}.Encode(), map[string]any{"Merchant": n.Merchant})
	switch {
	case errors.As(err, new(*mailer.RefusedError)):
		d.cfg.Logger.ErrorContext(ctx, "e-mail about requests for approval failed, given up", "err", err)
	case err != nil:
		if !errors.As(err, new(*mailer.AnswerError)) {
			d.mails.days.Return(to(n))
		}
		d.cfg.Logger.WarnContext(ctx, "e-mail about requests for approval failed, will retry", "err", err)
		return nil
	}
	return d.cfg.Sessions.EndApprovalNotice(ctx, n)
}
