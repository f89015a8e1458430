package dashboard

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/quittance/quittance/internal/access"
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
