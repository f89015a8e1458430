package dashboard

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/limits"
)

// maxForm bounds the body of a form, in bytes.
const maxForm = 64 << 10

// errForm is the error of a body that is not a form, or is too long.
var errForm = &pageError{Status: http.StatusBadRequest, Title: "error.form.title", Text: "error.form.text"}

// parseForm parses the body of a form. It does not read a form with files, which has its own bound.
func parseForm(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodPost {
		return nil
	}
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	}
	if err := r.ParseForm(); err != nil {
		return errForm
	}
	return nil
}

// signInForm is the page on which a person signs in, or proves to hold the key.
type signInForm struct {
	Next    string           // page to go to afterwards
	Link    string           // token of a link that signs in, or empty
	Holder  access.Principal // whom the link signs in
	Open    bool             // the person may sign in without a key
	Mail    bool             // the service can send a link
	Sent    bool             // it has sent one, if a person has the address
	Passkey bool             // a passkey can be used
	Error   string           // id of a text, or empty

	Provider     string // name of a provider that signs in, or empty
	ProviderPage string // address at which that begins, of the host to which the provider leads back
}

// signInForm returns the form of a request.
func (d *Dashboard) signInForm(r *http.Request) signInForm {
	form := signInForm{Next: next(r), Open: d.cfg.Open, Mail: d.cfg.Mail != nil, Passkey: d.cfg.Sessions.HasPasskeys()}
	if d.cfg.Provider != nil {
		form.Provider, form.ProviderPage = d.cfg.Provider.Name(), d.cfg.URL+BeginPath
	}
	return form
}

// browserOf describes the browser that makes a request.
func browserOf(r *http.Request) access.Browser {
	return access.Browser{Client: limits.FromContext(r.Context()).String(), Name: r.UserAgent(), Language: visitOf(r).text.Lang()}
}

// signInPage shows the form. A link that signs in also leads here: it is used only when the person
// presses the button, because programs open links in messages.
func (d *Dashboard) signInPage(w http.ResponseWriter, r *http.Request) error {
	form := d.signInForm(r)
	if form.Link = r.FormValue("link"); form.Link != "" {
		hideToken(w)
		var err error
		if form.Holder, err = d.cfg.Sessions.HolderOfLink(r.Context(), form.Link); errors.Is(err, access.ErrLink) {
			return d.refuseSignIn(w, r, http.StatusUnauthorized, refusal(err))
		} else if err != nil {
			return err
		}
	}
	return d.render(w, r, http.StatusOK, "signin.html", "signIn.title", form)
}

// hideToken keeps the token in a page's address out of the requests for the page's files, which proxies
// log with the address.
func hideToken(w http.ResponseWriter) { w.Header().Set("Referrer-Policy", "strict-origin") }

// signIn begins a session.
func (d *Dashboard) signIn(w http.ResponseWriter, r *http.Request) error {
	from := browserOf(r)
	var token string
	var err error
	link := r.PostFormValue("link")
	if link != "" {
		token, err = d.cfg.Sessions.OpenLink(r.Context(), link, from)
	} else {
		token, err = d.cfg.Sessions.SignIn(r.Context(), r.PostFormValue("key"), from)
	}
	if id := refusal(err); id != "" {
		return d.refuseSignIn(w, r, http.StatusUnauthorized, id)
	}
	if err != nil {
		return err
	}
	return d.signedIn(w, r, token)
}

// signedIn begins the session of a token in the browser, and leads to the page that it was on its way to.
func (d *Dashboard) signedIn(w http.ResponseWriter, r *http.Request, token string) error {
	d.setCookie(w, token)
	return lead(w, r, next(r))
}

// refuseSignIn shows the form again, with the text about why.
func (d *Dashboard) refuseSignIn(w http.ResponseWriter, r *http.Request, status int, id string) error {
	form := d.signInForm(r)
	form.Error = id
	return d.render(w, r, status, "signin.html", "signIn.title", form)
}

// refusal returns the id of the text about a refused sign-in, or "" for no error or another one.
func refusal(err error) string {
	switch exceeded := (*limits.ExceededError)(nil); {
	case errors.As(err, &exceeded):
		return ""
	case errors.Is(err, access.ErrLink):
		return "signIn.error.link"
	case errors.Is(err, access.ErrOtherKey):
		return "signIn.error.otherKey"
	case errors.Is(err, access.ErrMissing):
		return "signIn.error.missing"
	case errors.Is(err, access.ErrRevoked), errors.Is(err, access.ErrExpired):
		return "signIn.error.ended"
	case errors.Is(err, access.ErrWrongMode):
		return "signIn.error.mode"
	case access.IsRefusal(err):
		return "signIn.error.key"
	}
	return ""
}

// signOut ends the session.
func (d *Dashboard) signOut(w http.ResponseWriter, r *http.Request) error {
	v := visitOf(r)
	if err := d.cfg.Sessions.End(r.Context(), v.principal, v.session.ID); err != nil && !errors.Is(err, db.ErrNotFound) {
		return err
	}
	d.setCookie(w, "")
	return lead(w, r, "/dashboard/sign-in")
}

// confirmPage asks for the key once more, before a dangerous change.
func (d *Dashboard) confirmPage(w http.ResponseWriter, r *http.Request) error {
	refused := ""
	if r.FormValue("refused") != "" {
		refused = "passkeys.error"
	}
	form, err := d.confirmForm(r, refused)
	if err != nil {
		return err
	}
	return d.render(w, r, http.StatusOK, "confirm.html", "confirm.title", form)
}

// confirmForm is the page on which a person proves to hold the key. A person without a key signs in again.
type confirmForm struct {
	signInForm
	Email    string // of a person without a key, or empty
	Stranded bool   // the person has passkeys, but none of this host name
	// Connected reports whether the person has an account of today's provider.
	Connected bool
}

func (d *Dashboard) confirmForm(r *http.Request, refused string) (form confirmForm, err error) {
	v := visitOf(r)
	form.signInForm = d.signInForm(r)
	form.Open, form.Error = form.Open && v.session.KeyID == "", refused
	if v.session.PersonID != "" {
		person, err := d.cfg.Sessions.PersonOf(r.Context(), v.session)
		if err != nil {
			return form, err
		}
		form.Email = person.Email
		own, err := d.cfg.Sessions.Passkeys(r.Context(), v.session)
		if err != nil {
			return form, err
		}
		form.Passkey = len(own) > 0 && d.cfg.Sessions.CanUse(own)
		form.Stranded = len(own) > 0 && !form.Passkey
		accounts, err := d.cfg.Sessions.Accounts(r.Context(), v.session)
		if err != nil {
			return form, err
		}
		form.Connected = slices.ContainsFunc(accounts, func(a access.Account) bool {
			return d.cfg.Provider != nil && a.Issuer == d.cfg.Provider.Issuer()
		})
	}
	return form, nil
}

// confirm records that the person holds the key.
func (d *Dashboard) confirm(w http.ResponseWriter, r *http.Request) error {
	v := visitOf(r)
	err := d.cfg.Sessions.Confirm(r.Context(), v.session, r.PostFormValue("key"))
	if id := refusal(err); id != "" {
		form, err := d.confirmForm(r, id)
		if err != nil {
			return err
		}
		return d.render(w, r, http.StatusUnauthorized, "confirm.html", "confirm.title", form)
	}
	if err != nil {
		return err
	}
	return lead(w, r, next(r))
}

// confirmed returns a handler for dangerous changes: addresses, keys and secrets. A person who did not
// sign in within the last minutes must first enter the key again. The form that was sent is lost; the
// page that it was on is shown again.
func (d *Dashboard) confirmed(h handler, from func(r *http.Request) string) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		v := visitOf(r)
		if v.session.Confirmed(d.cfg.Now()) {
			return h(w, r)
		}
		return d.redirect(w, r, nil, "/dashboard/confirm", "next", from(r))
	}
}

// setLanguage stores the language that the person chose.
func (d *Dashboard) setLanguage(w http.ResponseWriter, r *http.Request) error {
	if err := d.cfg.Sessions.SetLanguage(r.Context(), visitOf(r).session, texts().Named(r.PostFormValue("language")).Lang()); err != nil {
		return err
	}
	return lead(w, r, next(r))
}

// maxSessions bounds the sessions of each kind on the page.
const maxSessions = 100

// sessionRow is a session on the page.
type sessionRow struct {
	access.Session
	Current bool // the one that asks
}

// sessionsView is the page of sessions, passkeys and an account at a provider.
type sessionsView struct {
	Rows     []sessionRow
	Newest   int // how many of each kind are listed if there are others, or 0
	Passkeys []access.Passkey
	May      bool   // the person may add a passkey
	Provider string // name of the provider at which the person may connect an account, or empty
	Accounts []access.Account
}

// sessions lists the sessions that the person may end, and the person's passkeys and account.
func (d *Dashboard) sessions(w http.ResponseWriter, r *http.Request) error {
	v := visitOf(r)
	list, more, err := d.cfg.Sessions.List(r.Context(), v.principal, maxSessions)
	if err != nil {
		return err
	}
	rows := db.Each(list, func(s access.Session) sessionRow { return sessionRow{s, s.ID == v.session.ID} })
	view := sessionsView{Rows: rows, May: d.cfg.Sessions.HasPasskeys() && v.session.PersonID != ""}
	if more {
		view.Newest = maxSessions
	}
	if view.Passkeys, err = d.cfg.Sessions.Passkeys(r.Context(), v.session); err != nil {
		return err
	}
	if view.Accounts, err = d.cfg.Sessions.Accounts(r.Context(), v.session); err != nil {
		return err
	}
	if d.cfg.Provider != nil && v.session.PersonID != "" {
		view.Provider = d.cfg.Provider.Name()
	}
	return d.render(w, r, http.StatusOK, "sessions.html", "sessions.title", view)
}

// endSession ends a session.
func (d *Dashboard) endSession(w http.ResponseWriter, r *http.Request) error {
	v := visitOf(r)
	if err := d.cfg.Sessions.End(r.Context(), v.principal, r.PathValue("id")); err != nil {
		return err
	}
	if r.PathValue("id") == v.session.ID {
		d.setCookie(w, "")
	}
	return d.redirect(w, r, nil, "/dashboard/sessions")
}
