package dashboard

import (
	"errors"
	"net/http"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/limits"
)

// maxForm bounds the body of a form, in bytes.
const maxForm = 64 << 10

// errForm is the error of a body that is not a form, or is too long.
var errForm = &pageError{Status: http.StatusBadRequest, Title: "error.form.title", Text: "error.form.text"}

// parseForm parses the body of a form.
func parseForm(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return errForm
	}
	return nil
}

// signInForm is the page on which a person signs in, or proves to hold the key.
type signInForm struct {
	Next  string // page to go to afterwards
	Link  string // token of a link that signs in, or empty
	Open  bool   // the person may sign in without a key
	Error string // id of a text, or empty
}

// signInPage shows the form. A link that signs in also leads here: it is used only when the person
// presses the button, because programs open links in messages.
func (d *Dashboard) signInPage(w http.ResponseWriter, r *http.Request) error {
	return d.render(w, r, http.StatusOK, "signin.html", "signIn.title", signInForm{Next: next(r), Link: r.FormValue("link"), Open: d.cfg.Open})
}

// signIn begins a session.
func (d *Dashboard) signIn(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	from := access.Browser{Client: limits.FromContext(r.Context()).String(), Name: r.UserAgent()}
	var token string
	var err error
	link := r.PostFormValue("link")
	if link != "" {
		token, err = d.cfg.Sessions.OpenLink(r.Context(), link, from)
	} else {
		token, err = d.cfg.Sessions.SignIn(r.Context(), r.PostFormValue("key"), from)
	}
	if id := refusal(err); id != "" {
		return d.render(w, r, http.StatusUnauthorized, "signin.html", "signIn.title", signInForm{Next: next(r), Open: d.cfg.Open, Error: id})
	}
	if err != nil {
		return err
	}
	d.setCookie(w, token)
	seeOther(w, r, next(r))
	return nil
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
	seeOther(w, r, "/dashboard/sign-in")
	return nil
}

// confirmPage asks for the key once more, before a dangerous change.
func (d *Dashboard) confirmPage(w http.ResponseWriter, r *http.Request) error {
	return d.render(w, r, http.StatusOK, "confirm.html", "confirm.title", signInForm{Next: next(r), Open: d.cfg.Open && visitOf(r).session.KeyID == ""})
}

// confirm records that the person holds the key.
func (d *Dashboard) confirm(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	v := visitOf(r)
	err := d.cfg.Sessions.Confirm(r.Context(), v.session, r.PostFormValue("key"))
	if id := refusal(err); id != "" {
		return d.render(w, r, http.StatusUnauthorized, "confirm.html", "confirm.title", signInForm{Next: next(r), Open: d.cfg.Open && v.session.KeyID == "", Error: id})
	}
	if err != nil {
		return err
	}
	seeOther(w, r, next(r))
	return nil
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
		d.redirect(w, r, "/dashboard/confirm", "next", from(r))
		return nil
	}
}

// setLanguage stores the language that the person chose.
func (d *Dashboard) setLanguage(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	if err := d.cfg.Sessions.SetLanguage(r.Context(), visitOf(r).session, texts().Named(r.PostFormValue("language")).Lang()); err != nil {
		return err
	}
	seeOther(w, r, next(r))
	return nil
}

// maxSessions bounds the sessions on the page.
const maxSessions = 100

// sessionRow is a session on the page.
type sessionRow struct {
	access.Session
	Current bool // the one that asks
}

// sessions lists the sessions that the person may end.
func (d *Dashboard) sessions(w http.ResponseWriter, r *http.Request) error {
	v := visitOf(r)
	list, err := d.cfg.Sessions.List(r.Context(), v.principal, "", maxSessions)
	if err != nil {
		return err
	}
	rows := make([]sessionRow, len(list))
	for i, s := range list {
		rows[i] = sessionRow{s, s.ID == v.session.ID}
	}
	return d.render(w, r, http.StatusOK, "sessions.html", "sessions.title", rows)
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
	seeOther(w, r, "/dashboard/sessions")
	return nil
}
