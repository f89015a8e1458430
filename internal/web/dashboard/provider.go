package dashboard

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/identity"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/web/webpage"
)

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

// providerRoutes returns the routes of sign-in by an OpenID Connect provider. A link leads there, because
// browsers do not let a form lead to another host.
func (d *Dashboard) providerRoutes() []webpage.Route {
	if d.cfg.Provider == nil {
		return nil
	}
	return []webpage.Route{
		d.route("GET "+BeginPath, "", d.beginProvider, webpage.Open),
		d.route("GET "+CallbackPath, "", d.providerSignIn, webpage.Open),
	}
}

// flowCookie is the name of the cookie with the sign-in that a browser has begun, and the page to go to
// afterwards.
func (d *Dashboard) flowCookie() string { return d.cookieName() + "-flow" }

// beginProvider leads to the provider.
func (d *Dashboard) beginProvider(w http.ResponseWriter, r *http.Request) error {
	flow, to, fresh := identity.NewFlow(), next(r), r.FormValue("fresh") == "1"
	page, err := d.cfg.Provider.Begin(r.Context(), flow, fresh)
	if err != nil {
		return d.refuseProvider(w, r, err)
	}
	if len(to) > maxNext {
		to = ""
	}
	secret := url.Values{"flow": {string(flow)}, "next": {to}, "fresh": {strconv.FormatBool(fresh)}}
	d.giveCookie(w, d.flowCookie(), secret.Encode(), flowLifetime)
	seeOther(w, r, page)
	return nil
}

// providerSignIn begins a session of the person who signed in to the provider.
func (d *Dashboard) providerSignIn(w http.ResponseWriter, r *http.Request) error {
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
	account, err := d.cfg.Provider.Finish(r.Context(), identity.Flow(r.Form.Get("flow")), answer)
	if errors.Is(err, identity.ErrUnverified) {
		err = nil // the account may be a person's by now
	}
	if err == nil && r.Form.Get("fresh") == "true" && d.cfg.Now().Sub(account.SignedInAt) >= access.ConfirmedFor {
		err = errNotFresh
	}
	if err != nil {
		return d.refuseProvider(w, r, err)
	}
	known := access.Account(account)
	if known.Email, err = mailer.Address(account.Email); err != nil {
		known.Email = ""
	}
	token, err := d.cfg.Sessions.SignInByProvider(r.Context(), known, browserOf(r))
	if errors.Is(err, access.ErrAccount) && account.Email == "" {
		err = identity.ErrUnverified
	}
	if err != nil {
		return d.refuseProvider(w, r, err)
	}
	d.setCookie(w, token)
	seeOther(w, r, next(r))
	return nil
}

// errNotFresh is the error of a sign-in that was to confirm something, and does not.
var errNotFresh = errors.New("the provider did not ask the person to sign in again")

// refuseProvider shows why a sign-in by the provider failed, and the ways to sign in. It returns an
// internal error unchanged.
func (d *Dashboard) refuseProvider(w http.ResponseWriter, r *http.Request, err error) error {
	status, id := http.StatusForbidden, "provider.error.unknown"
	switch {
	case errors.Is(err, access.ErrAccount):
	case errors.Is(err, identity.ErrDown):
		status, id = http.StatusBadGateway, "provider.error.down"
	case errors.Is(err, identity.ErrRefused):
		status, id = http.StatusUnauthorized, "provider.error.again"
	case errors.Is(err, identity.ErrUnverified):
		id = "provider.error.unverified"
	case errors.Is(err, errNotFresh):
		id = "provider.error.fresh"
	default:
		return err
	}
	d.cfg.Logger.WarnContext(r.Context(), "sign-in by the provider failed", "err", err)
	return d.refuseSignIn(w, r, status, id)
}
