package dashboard

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/identity"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/web/webpage"
)

// SignInsOfClient bounds the sign-ins by passkey that one client network begins, and those by a provider that it ends,
// in MailWindow.
const SignInsOfClient = 60

// passkeyRoutes returns the routes of passkeys. A form is sent with the answer of the passkey, which the
// page's script has asked for.
func (d *Dashboard) passkeyRoutes() []webpage.Route {
	account := func(r *http.Request) string { return visitOf(r).Link("/dashboard/sessions") }
	adding := func(r *http.Request) string { return visitOf(r).Link("/dashboard/passkeys/new") }
	return []webpage.Route{
		d.route("POST /dashboard/sign-in/passkey", "", d.beginPasskeySignIn, webpage.Open),
		d.route("POST /dashboard/sign-in/passkey/finish", "", d.withPasskeys(d.passkeySignIn), webpage.Open),
		d.route("GET /dashboard/passkeys/new", "", d.confirmed(d.withPasskeys(ofPerson(d.newPasskey)), adding)),
		d.route("POST /dashboard/passkeys/add", "", d.confirmed(ofPerson(d.beginPasskey(access.ToAdd)), adding)),
		d.route("POST /dashboard/passkeys", "", d.confirmed(d.withPasskeys(d.addPasskey), adding)),
		d.route("POST /dashboard/passkeys/confirm", "", ofPerson(d.beginPasskey(access.ToConfirm))),
		d.route("POST /dashboard/confirm/passkey", "", d.withPasskeys(ofPerson(d.confirmByPasskey))),
		d.route("POST /dashboard/passkeys/{id}/remove", "", d.confirmed(d.removePasskey, account)),
	}
}

// only returns a handler that answers that there is no such page unless a visit fits.
func only(fits func(*visit) bool, h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if !fits(visitOf(r)) {
			return errNotFound
		}
		return h(w, r)
	}
}

// withPasskeys returns a handler that answers so if passkeys cannot be used.
func (d *Dashboard) withPasskeys(h handler) handler {
	return only(func(*visit) bool { return d.cfg.Sessions.HasPasskeys() }, h)
}

// ofPerson returns a handler that answers so in a session that began by a key.
func ofPerson(h handler) handler {
	return only(func(v *visit) bool { return v.session.PersonID != "" }, h)
}

// ofMerchant returns a handler that answers so on a page that is about all merchants.
func ofMerchant(h handler) handler { return only(func(v *visit) bool { return v.merchant != "" }, h) }

// begunPasskey is what the page's script asks for before it uses a passkey.
type begunPasskey struct {
	Token   string `json:"token"`
	Options any    `json:"options"` // for navigator.credentials
}

// beginPasskey returns a handler that answers with the options of a use of a passkey.
func (d *Dashboard) beginPasskey(purpose access.Purpose) handler {
	return d.withPasskeys(func(w http.ResponseWriter, r *http.Request) error {
		options, token, err := d.cfg.Sessions.BeginPasskey(r.Context(), purpose, visitOf(r).session)
		if err != nil {
			return err
		}
		return d.WriteJSON(w, r, http.StatusOK, begunPasskey{token, options})
	})
}

// errPasskey is the error of a passkey that is not accepted.
var errPasskey = &pageError{Status: http.StatusConflict, Title: "passkeys.title", Text: "passkeys.error"}

// beginPasskeySignIn begins a sign-in of a person whom the passkey names.
func (d *Dashboard) beginPasskeySignIn(w http.ResponseWriter, r *http.Request) error {
	if err := d.mails.signIns.Take(r.Context()); err != nil {
		return err
	}
	return d.beginPasskey(access.ToSignIn)(w, r)
}

// passkeySignIn begins a session.
func (d *Dashboard) passkeySignIn(w http.ResponseWriter, r *http.Request) error {
	token, err := d.cfg.Sessions.SignInByPasskey(r.Context(), r.PostFormValue("token"), []byte(r.PostFormValue("answer")), browserOf(r))
	if errors.Is(err, access.ErrPasskey) {
		return d.refuseSignIn(w, r, http.StatusUnauthorized, "passkeys.error")
	}
	if err != nil {
		return err
	}
	return d.signedIn(w, r, token)
}

// newPasskey shows the form of a new passkey.
func (d *Dashboard) newPasskey(w http.ResponseWriter, r *http.Request) error {
	return d.render(w, r, http.StatusOK, "passkey.html", "passkeys.add", nil)
}

// addPasskey stores a passkey of the person.
func (d *Dashboard) addPasskey(w http.ResponseWriter, r *http.Request) error {
	err := d.cfg.Sessions.AddPasskey(r.Context(), visitOf(r).session, r.PostFormValue("token"), r.PostFormValue("name"), []byte(r.PostFormValue("answer")))
	if errors.As(err, new(*invoice.FieldError)) {
		return errForm
	}
	if err != nil {
		return err
	}
	d.mailAboutSignIn(r, "mail.added", r.PostFormValue("name"))
	return d.redirect(w, r, nil, "/dashboard/sessions")
}

// mailAboutSignIn sends the person a mail about a passkey or an account that was added or removed, maybe by somebody
// else. It is sent before the answer, so that neither mails that wait nor the end of the process keep it back.
func (d *Dashboard) mailAboutSignIn(r *http.Request, kind, name string) {
	if d.cfg.Mail == nil {
		return
	}
	v := visitOf(r)
	person, err := d.cfg.Sessions.PersonOf(r.Context(), v.session)
	if err == nil {
		send := func(ctx context.Context) error {
			return d.mail(ctx, v, person.Email, kind, "/dashboard/sessions", map[string]any{"Name": name})
		}
		if err = send(context.WithoutCancel(r.Context())); err != nil && !errors.As(err, new(*mailer.RefusedError)) {
			err = d.cfg.Mail.Queue(send) // to try it again
		}
	}
	if err != nil {
		d.cfg.Logger.ErrorContext(r.Context(), "e-mail about a way to sign in failed", "err", err)
	}
}

// confirmByPasskey records that the person has used a passkey.
func (d *Dashboard) confirmByPasskey(w http.ResponseWriter, r *http.Request) error {
	err := d.cfg.Sessions.ConfirmByPasskey(r.Context(), visitOf(r).session, r.PostFormValue("token"), []byte(r.PostFormValue("answer")))
	if errors.Is(err, access.ErrPasskey) {
		return d.redirect(w, r, nil, "/dashboard/confirm", "next", next(r), "refused", "passkey")
	}
	if err != nil {
		return err
	}
	return lead(w, r, next(r))
}

// removePasskey deletes a passkey of the person.
func (d *Dashboard) removePasskey(w http.ResponseWriter, r *http.Request) error {
	id, err := url.PathUnescape(r.PathValue("id"))
	if err != nil {
		return errNotFound
	}
	k, err := d.cfg.Sessions.RemovePasskey(r.Context(), visitOf(r).session, id)
	if err != nil {
		return err
	}
	d.mailAboutSignIn(r, "mail.removed", k.Name)
	return d.redirect(w, r, nil, "/dashboard/sessions")
}

// Pages of a sign-in by an OpenID Connect provider.
const (
	BeginPath    = "/dashboard/sign-in/provider"
	CallbackPath = BeginPath + "/callback" // to which the provider leads people back
)

const (
	// flowLifetime is how long a person has to sign in to the provider.
	flowLifetime = 10 * time.Minute
	// maxNext bounds the page to go to afterwards, in bytes: browsers drop cookies of more than 4 KiB.
	maxNext = 1000
)

// providerRoutes returns the routes of an OpenID Connect provider.
func (d *Dashboard) providerRoutes() []webpage.Route {
	if d.cfg.Provider == nil {
		return nil
	}
	account := func(r *http.Request) string { return visitOf(r).Link("/dashboard/sessions") }
	return []webpage.Route{
		d.route("GET "+BeginPath, "", d.beginProvider, webpage.Open),
		d.route("GET "+CallbackPath, "", d.endProvider, webpage.Open),
		d.route("POST /dashboard/account", "", d.confirmed(ofPerson(d.beginAccount), account)),
		d.route("POST /dashboard/account/remove", "", d.confirmed(ofPerson(d.removeAccount), account)),
	}
}

// flowCookie is the name of the cookie with what a browser has begun at the provider, and the page to go to afterwards.
func (d *Dashboard) flowCookie() string { return d.cookieName() + "-flow" }

// flowOf returns the flow of the secret in a cookie for a purpose. To add an account, it has the session's token,
// too: an answer that another session asked for, or that was asked for to sign in, does not fit.
func (d *Dashboard) flowOf(r *http.Request, secret string, to access.Purpose) identity.Flow {
	if secret == "" { // everybody knows that one
		return ""
	}
	if c, err := r.Cookie(d.cookieName()); err == nil && to == access.ToAdd {
		secret += ":" + c.Value
	}
	return identity.Flow(string(to) + ":" + secret)
}

// goTo gives the browser a new flow for a purpose, and returns the provider's page for it.
func (d *Dashboard) goTo(w http.ResponseWriter, r *http.Request, to access.Purpose) (string, error) {
	secret, then := string(identity.NewFlow()), next(r)
	page, err := d.cfg.Provider.Begin(r.Context(), d.flowOf(r, secret, to), to != access.ToSignIn, to == access.ToAdd)
	if err != nil {
		return "", d.refuseProvider(w, r, to, err)
	}
	if len(then) > maxNext {
		then = ""
	}
	d.giveCookie(w, d.flowCookie(), url.Values{"flow": {secret}, "next": {then}, "to": {string(to)}}.Encode(), flowLifetime)
	return page, nil
}

// beginProvider leads to the provider, to sign in or to confirm.
func (d *Dashboard) beginProvider(w http.ResponseWriter, r *http.Request) error {
	to := access.ToSignIn
	if r.FormValue("fresh") == "1" {
		to = access.ToConfirm
	}
	page, err := d.goTo(w, r, to)
	if page == "" {
		return err
	}
	return lead(w, r, page)
}

// beginAccount leads to the provider, to connect an account there. It is a form, so that no page of others begins
// it, and answers with a page that leads on, because browsers do not let a form lead to another host.
func (d *Dashboard) beginAccount(w http.ResponseWriter, r *http.Request) error {
	page, err := d.goTo(w, r, access.ToAdd)
	if page == "" {
		return err
	}
	w.Header().Set("Refresh", "0; url="+page)
	return d.render(w, r, http.StatusOK, "account.html", "account.connect", page)
}

// endProvider ends what the browser had begun at the provider.
func (d *Dashboard) endProvider(w http.ResponseWriter, r *http.Request) error {
	hideToken(w) // the code
	answer := r.URL.Query()
	r.Form = url.Values{} // next is of who began, also on the page of a refusal
	if c, err := r.Cookie(d.flowCookie()); err == nil {
		r.Form, _ = url.ParseQuery(c.Value)                       // without a flow, no answer fits
		if err := d.mails.signIns.Take(r.Context()); err != nil { // pages of others cannot send the cookie
			return err
		}
	}
	d.giveCookie(w, d.flowCookie(), "", 0)
	to := access.Purpose(r.Form.Get("to"))
	account, err := d.cfg.Provider.Finish(r.Context(), d.flowOf(r, r.Form.Get("flow"), to), answer)
	old := err == nil && d.cfg.Now().Sub(account.SignedInAt) >= access.ConfirmedFor
	if to == access.ToAdd {
		if old && account.SignedInAt.Unix() > 0 { // not every provider says when
			err = errNotFresh
		}
		r = r.Clone(r.Context())
		r.URL = &url.URL{Path: "/dashboard/sessions"} // where a person signs in again, without the code
		d.WithSession(d.serve(func(w http.ResponseWriter, r *http.Request) error {
			hideToken(w)
			return d.addAccount(w, r, account, err)
		})).ServeHTTP(w, r)
		return nil
	}
	if old && to == access.ToConfirm {
		err = errNotFresh
	}
	var token string
	if err == nil {
		token, err = d.cfg.Sessions.SignInByProvider(r.Context(), account.Issuer, account.Subject, account.SignedInAt, browserOf(r))
	}
	if err != nil {
		return d.refuseProvider(w, r, to, err)
	}
	return d.signedIn(w, r, token)
}

// errNotFresh is the error of a sign-in that was to confirm something, and does not.
var errNotFresh = errors.New("the provider did not ask the person to sign in again")

// addAccount connects the account with which the provider answered, unless err is set, to the person.
func (d *Dashboard) addAccount(w http.ResponseWriter, r *http.Request, account identity.Account, err error) error {
	if err == nil {
		err = d.cfg.Sessions.AddAccount(r.Context(), visitOf(r).session, access.Account{Issuer: account.Issuer, Subject: account.Subject, Name: d.cfg.Provider.Name()})
	}
	if errors.Is(err, access.ErrUnconfirmed) {
		return d.askToConfirm(w, r)
	}
	if err != nil {
		return d.refuseProvider(w, r, access.ToAdd, err)
	}
	d.mailAboutSignIn(r, "mail.added", d.cfg.Provider.Name())
	return d.redirect(w, r, nil, "/dashboard/sessions")
}

// askToConfirm leads to the page that confirms the session, and back to the page of sessions.
func (d *Dashboard) askToConfirm(w http.ResponseWriter, r *http.Request) error {
	return d.redirect(w, r, nil, "/dashboard/confirm", "next", visitOf(r).Link("/dashboard/sessions"))
}

// removeAccount disconnects the person's account.
func (d *Dashboard) removeAccount(w http.ResponseWriter, r *http.Request) error {
	a, err := d.cfg.Sessions.RemoveAccount(r.Context(), visitOf(r).session)
	if errors.Is(err, access.ErrUnconfirmed) { // since the request began
		return d.askToConfirm(w, r)
	}
	if err != nil {
		return err
	}
	d.mailAboutSignIn(r, "mail.removed", a.Name)
	return d.redirect(w, r, nil, "/dashboard/sessions")
}

// refuseProvider shows why the provider's answer was not enough for a purpose: with the ways to sign in, or to add an
// account, as an error. It returns an internal error unchanged.
func (d *Dashboard) refuseProvider(w http.ResponseWriter, r *http.Request, to access.Purpose, err error) error {
	status, id := http.StatusForbidden, "provider.error.unknown"
	switch {
	case errors.Is(err, access.ErrAccount):
	case errors.Is(err, db.ErrConflict):
		status, id = http.StatusConflict, "provider.error.connected"
	case errors.Is(err, identity.ErrDown):
		status, id = http.StatusBadGateway, "provider.error.down"
	case errors.Is(err, identity.ErrRefused):
		status, id = http.StatusUnauthorized, "provider.error.again"
	case errors.Is(err, errNotFresh):
		id = "provider.error.fresh"
	default:
		return err
	}
	d.cfg.Logger.WarnContext(r.Context(), "sign-in by the provider failed", "err", err)
	if to == access.ToAdd {
		return d.render(w, r, status, "message.html", "account.connect", pageError{Text: id})
	}
	return d.refuseSignIn(w, r, status, id)
}
