package dashboard

import (
	"cmp"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/db"
)

// maxKeyPage is how many keys or merchants are read at a time, which is the interface's maximum.
const maxKeyPage = 200

// limited returns a query for the interface's maximum number of elements.
func limited(query url.Values) url.Values {
	if query == nil {
		query = make(url.Values)
	}
	query.Set("limit", strconv.Itoa(maxKeyPage))
	return query
}

// keyRow is a key. A key with the scopes of a role is a person's.
type keyRow struct {
	apitypes.Key
	Role string // or empty
	Own  bool   // the person is signed in with it
	May  bool   // the person may change it
}

// keyRow returns the row of a key for the person of a visit.
func (v *visit) keyRow(k apitypes.Key) keyRow {
	scopes, err := access.ParseScopes(k.Scopes)
	return keyRow{Key: k, Role: scopes.Role(), Own: k.ID == v.principal.KeyID, May: err == nil && scopes.Within(v.principal.Scopes)}
}

// Active reports whether the key is accepted, and was not rotated. It is for templates.
func (k keyRow) Active() bool { return k.State == string(access.Active) && k.ReplacedBy == "" }

// keyList is the page of people and keys.
type keyList struct {
	People, Programs []keyRow // that are accepted
	Past             []keyRow
	Invitations      []invitationView
	Missing          bool // the operator has not configured all ways to sign in
	Next             string
}

// keys lists people and keys.
func (d *Dashboard) keys(w http.ResponseWriter, r *http.Request) error {
	v := visitOf(r)
	query := v.query()
	filter := filtered(r, query, nil)
	list := get[apitypes.KeyList](d, r, "/api/keys", limited(query))
	body := keyList{Next: nextPage(v, filter, list.NextCursor), Missing: v.IsOperator() && (d.cfg.Mail == nil || !d.cfg.Sessions.HasPasskeys())}
	open, err := d.cfg.Sessions.Invitations(r.Context(), v.principal, v.merchant)
	if err != nil {
		return err
	}
	body.Invitations = db.Each(open, func(i access.Invitation) invitationView { return invitationView{Invitation: i, Role: i.Scopes.Role()} })
	for _, k := range list.Keys {
		switch row := v.keyRow(k); {
		case row.State != string(access.Active):
			body.Past = append(body.Past, row)
		case row.Role != "", row.PersonID != "":
			body.People = append(body.People, row)
		default:
			body.Programs = append(body.Programs, row)
		}
	}
	return d.render(w, r, http.StatusOK, "keys.html", "nav.keys", body)
}

// findKey returns the key in the path.
func (d *Dashboard) findKey(r *http.Request) (keyRow, error) {
	v := visitOf(r)
	k, err := d.cfg.Sessions.Key(r.Context(), v.principal, r.PathValue("id"))
	if errors.Is(err, db.ErrNotFound) || err == nil && v.merchant != "" && k.MerchantID != v.merchant {
		err = errNotFound
	}
	return v.keyRow(apiconv.Key(k, d.cfg.Now())), err
}

// keyView is the page of a key.
type keyView struct {
	keyRow
	Error    string
	Overlaps []span
	Requests requestTable // the last ones with the key
}

// span is a length of time to choose.
type span struct {
	Text    string // id
	Seconds int64
}

const (
	hour = int64(time.Hour / time.Second)
	day  = 24 * hour
)

// overlaps are the overlaps of a rotation, the default first.
var overlaps = []span{{"span.day", day}, {"span.none", 0}, {"span.hour", hour}, {"span.week", 7 * day}, {"span.month", 30 * day}}

// lifetimes are the times after which a new key expires, the default first.
var lifetimes = []span{{"span.never", 0}, {"span.day", day}, {"span.month", 30 * day}, {"span.quarter", 90 * day}, {"span.year", 365 * day}}

// showKey shows a key, and the actions on it.
func (d *Dashboard) showKey(w http.ResponseWriter, r *http.Request, status int, refused string) error {
	row, err := d.findKey(r)
	if err != nil {
		return err
	}
	return d.render(w, r, status, "key.html", "key.title", keyView{row, refused, overlaps, d.requestsOf(r, row.ID)})
}

// keyForm is the form of a new key.
type keyForm struct {
	Once      string // a token, so that the form makes only one key
	For       string // person or program
	Mailed    bool   // a person is invited by mail
	Email     string // of the person
	Name      string
	Role      string
	Scopes    []string
	Lifetime  int64 // in seconds; 0 does not expire
	Error     string
	Roles     []string
	All       []access.Scope
	Lifetimes []span
}

// Chosen reports whether a scope is chosen. It is for templates.
func (f keyForm) Chosen(scope access.Scope) bool { return slices.Contains(f.Scopes, string(scope)) }

// newKey shows the form.
func (d *Dashboard) newKey(w http.ResponseWriter, r *http.Request) error {
	form := keyForm{For: r.FormValue("for"), Role: access.PresetReadOnly, Scopes: access.Standard.Names()}
	return d.showKeyForm(w, r, http.StatusOK, form)
}

// showKeyForm shows the form with the roles and scopes that the person can give.
func (d *Dashboard) showKeyForm(w http.ResponseWriter, r *http.Request, status int, form keyForm) error {
	form.Once = rand.Text()
	own := visitOf(r).principal.Scopes
	for _, role := range access.Roles {
		if scopes, err := access.ParseScopes([]string{role}); err == nil && scopes.Within(own) {
			form.Roles = append(form.Roles, role)
		}
	}
	for _, scope := range access.AllScopes {
		if own.Has(scope) {
			form.All = append(form.All, scope)
		}
	}
	title := "keys.programs.add"
	if form.For != forProgram {
		form.For, title = forPerson, "newPerson.title"
	}
	form.Lifetimes, form.Mailed = lifetimes, form.For == forPerson && d.cfg.Mail != nil
	return d.render(w, r, status, "newkey.html", title, form)
}

// Holders of a new key.
const (
	forPerson  = "person"
	forProgram = "program"
)

// keyMade is a page that shows a key, or a link that signs in, once.
type keyMade struct {
	apitypes.Key
	Secret  string // the key, or empty
	Link    string // that signs in, or empty
	Rotated bool
}

// createKey creates a key and, for a person, a link that signs in.
func (d *Dashboard) createKey(w http.ResponseWriter, r *http.Request) error {
	form := keyForm{For: r.PostFormValue("for"), Email: r.PostFormValue("email"), Name: r.PostFormValue("name"), Role: r.PostFormValue("role"), Scopes: r.PostForm["scope"]}
	if once := r.PostFormValue("once"); once != "" {
		if first, err := d.cfg.Sessions.TakeForm(r.Context(), visitOf(r).session, once); err != nil {
			return err
		} else if !first {
			return errSentTwice
		}
	}
	if form.For != forProgram && d.cfg.Mail != nil {
		return d.invite(w, r, form)
	}
	form.Lifetime, _ = strconv.ParseInt(r.PostFormValue("lifetime"), 10, 64)
	request := apitypes.CreateKeyRequest{Name: form.Name, MerchantID: visitOf(r).merchant, Scopes: append([]string{}, form.Scopes...)}
	if form.For != forProgram {
		request.Scopes = []string{form.Role}
	}
	if form.Lifetime > 0 {
		request.ExpiresAt = d.cfg.Now().Unix() + form.Lifetime
	}
	var made apitypes.KeySecretResponse
	err := d.service.send(r.Context(), http.MethodPost, "/api/keys", request, &made)
	if form.Error, err = detail(err); err != nil {
		return err
	}
	if form.Error != "" {
		return d.showKeyForm(w, r, http.StatusBadRequest, form)
	}
	body := keyMade{Key: made.Key, Secret: made.Secret}
	if form.For != forProgram {
		if body.Link, err = d.signInLink(r, made.Key.ID); err != nil {
			return err
		}
	}
	return d.render(w, r, http.StatusOK, "keymade.html", "keyMade.title", body)
}

// signInLink makes a link that signs the holder of a key in.
func (d *Dashboard) signInLink(r *http.Request, keyID string) (string, error) {
	var link apitypes.SignInLink
	err := d.service.send(r.Context(), http.MethodPost, "/api/sign-in-links", apitypes.CreateSignInLinkRequest{KeyID: keyID}, &link)
	return d.reachedAt(r) + link.Path, err
}

// rotateKey replaces a key.
func (d *Dashboard) rotateKey(w http.ResponseWriter, r *http.Request) error {
	overlap, err := strconv.ParseInt(cmp.Or(r.PostFormValue("overlap"), strconv.FormatInt(day, 10)), 10, 64)
	if err != nil {
		return errForm
	}
	var made apitypes.KeySecretResponse
	err = d.service.send(r.Context(), http.MethodPost, id("/api/keys", r.PathValue("id"))+"/rotate", apitypes.RotateKeyRequest{OverlapSeconds: &overlap}, &made)
	if err != nil {
		return d.outcome(w, r, err, d.showKey, "")
	}
	return d.render(w, r, http.StatusOK, "keymade.html", "keyMade.title", keyMade{Key: made.Key, Secret: made.Secret, Rotated: true})
}

// revokeKey revokes a key.
func (d *Dashboard) revokeKey(w http.ResponseWriter, r *http.Request) error {
	return d.redirect(w, r, d.service.send(r.Context(), http.MethodDelete, id("/api/keys", r.PathValue("id")), nil, nil), "/dashboard/keys")
}

// linkKey makes a link that signs the holder of a key in.
func (d *Dashboard) linkKey(w http.ResponseWriter, r *http.Request) error {
	row, err := d.findKey(r)
	if err != nil {
		return err
	}
	link, err := d.signInLink(r, row.ID)
	if err != nil {
		return d.outcome(w, r, err, d.showKey, "")
	}
	return d.render(w, r, http.StatusOK, "keymade.html", "keys.link", keyMade{Key: row.Key, Link: link})
}

// requestFilters are the parameters of the list of requests that the REST interface takes.
var requestFilters = []string{"status", "keyId"}

// requestRow is a request of a program.
type requestRow struct{ apitypes.LoggedRequest }

// Outcome returns the class of the status, for its color. It is for templates.
func (r requestRow) Outcome() string {
	switch {
	case r.Status >= http.StatusInternalServerError:
		return "failed"
	case r.Status >= http.StatusBadRequest:
		return "warn"
	}
	return "ok"
}

// Listed reports whether the list of keys has the key of the request. It is for templates.
func (r requestRow) Listed() bool { return !access.IsConfigured(r.KeyID) }

// Unsafe reports whether the request created something without an Idempotency-Key. It is for templates.
func (r requestRow) Unsafe() bool {
	return r.IdempotencyKey != nil && !*r.IdempotencyKey && r.Status < http.StatusBadRequest
}

// requestTable is a table of requests.
type requestTable struct {
	*visit
	Rows []requestRow
}

// Unsafe reports whether one of the requests is unsafe. It is for templates.
func (t requestTable) Unsafe() bool {
	return slices.ContainsFunc(t.Rows, requestRow.Unsafe)
}

// requestList is the page of the last requests.
type requestList struct {
	Filter url.Values
	Table  requestTable
	Next   string
}

// Statuses returns the filters by status. It is for templates.
func (requestList) Statuses() []access.RequestStatus { return access.RequestStatuses }

// requests lists the last requests of programs.
func (d *Dashboard) requests(w http.ResponseWriter, r *http.Request) error {
	v := visitOf(r)
	query := v.query()
	filter := filtered(r, query, requestFilters)
	table, next := d.readRequests(r, query)
	return d.render(w, r, http.StatusOK, "requests.html", "nav.requests", requestList{filter, table, nextPage(v, filter, next)})
}

// readRequests returns a page of requests, and the cursor of the next.
func (d *Dashboard) readRequests(r *http.Request, query url.Values) (table requestTable, next string) {
	list := get[apitypes.RequestList](d, r, "/api/requests", query)
	rows := db.Each(list.Requests, func(logged apitypes.LoggedRequest) requestRow { return requestRow{logged} })
	return requestTable{visitOf(r), rows}, list.NextCursor
}

// maxKeyRequests is how many requests the page of a key shows.
const maxKeyRequests = 10

// requestsOf returns the last requests with a key, if the person may read them.
func (d *Dashboard) requestsOf(r *http.Request, keyID string) (table requestTable) {
	if visitOf(r).Can(access.EventsRead) {
		table, _ = d.readRequests(r, url.Values{"keyId": {keyID}, "limit": {strconv.Itoa(maxKeyRequests)}})
	}
	return table
}
