package dashboard_test

import (
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/dashboard"
	"github.com/quittance/quittance/internal/web/webpage"
)

// routeTable finds the route of a request to the dashboard.
type routeTable struct {
	mux    *http.ServeMux
	routes map[string]webpage.Route // by pattern
}

func newRouteTable() *routeTable {
	board := dashboard.New(dashboard.Config{API: http.NotFoundHandler(), Sessions: new(access.SessionManager), Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	table := &routeTable{mux: http.NewServeMux(), routes: make(map[string]webpage.Route)}
	for _, r := range board.Routes() {
		if !strings.HasPrefix(r.Pattern, "GET /dashboard/static/") {
			table.routes[r.Pattern] = r
			table.mux.Handle(r.Pattern, r.Handler)
		}
	}
	return table
}

// patterns returns the patterns of all routes, sorted.
func (table *routeTable) patterns() []string { return slices.Sorted(maps.Keys(table.routes)) }

// of returns the pattern of a request's route, or "".
func (table *routeTable) of(method, path string) string {
	u, err := url.Parse(path)
	if err != nil {
		return ""
	}
	_, pattern := table.mux.Handler(&http.Request{Method: method, URL: u, Host: "localhost"})
	return pattern
}

// place is a page that a link leads to.
type place struct {
	pattern string
	path    string // with the query
	page    answer
}

// filledForm is a form of a page that makes a change, with the page's values.
type filledForm struct {
	action string
	values url.Values
}

// site is the pages that a person can reach by links.
type site struct {
	places []place
	forms  map[string]filledForm // by pattern: the first of each route
}

// mostAlike bounds the pages that a crawl visits of a route with the same parameters.
const mostAlike = 12

// crawl follows all links, beginning at pages of the dashboard.
func (p *person) crawl(t *testing.T, table *routeTable, from ...string) site {
	t.Helper()
	s := site{forms: make(map[string]filledForm)}
	seen, alike := make(map[string]bool), make(map[string]int)
	for waiting := from; len(waiting) > 0; waiting = waiting[1:] {
		path, _, _ := strings.Cut(waiting[0], "#")
		pattern := table.of(http.MethodGet, path)
		if seen[path] || pattern == "" {
			continue
		}
		seen[path] = true
		like := pattern + " " + parameters(path)
		if alike[like] >= mostAlike {
			continue
		}
		alike[like]++
		page := p.get(path)
		s.places = append(s.places, place{pattern, path, page})
		for _, form := range page.Forms() {
			action := form.Attrs["action"]
			if form.Attrs["method"] != "post" {
				values := form.Values()
				maps.DeleteFunc(values, func(_ string, all []string) bool { return strings.Join(all, "") == "" })
				waiting = append(waiting, at(path, action+"?"+values.Encode()))
			}
			if of := table.of(http.MethodPost, action); form.Attrs["method"] == "post" && s.forms[of].action == "" {
				s.forms[of] = filledForm{action, form.Values()}
			}
		}
		for _, to := range page.Links() {
			waiting = append(waiting, at(path, to))
		}
	}
	return s
}

// parameters returns the names of a page's parameters.
func parameters(path string) string {
	u, err := url.Parse(path)
	if err != nil {
		return ""
	}
	return strings.Join(slices.Sorted(maps.Keys(u.Query())), " ")
}

// at returns the path of a link on a page, or "" if it leads outside.
func at(page, link string) string {
	from, err := url.Parse(page)
	if err != nil {
		return ""
	}
	to, err := from.Parse(link)
	if err != nil || to.Host != "" || to.Path != "/dashboard" && !strings.HasPrefix(to.Path, "/dashboard/") {
		return ""
	}
	return to.RequestURI()
}

// first returns the address of the first page of a route, or "".
func (s site) first(pattern string) string {
	for _, p := range s.places {
		if p.pattern == pattern {
			return p.path
		}
	}
	return ""
}

// unlinked are the routes that no link or form leads to, and the reason.
var unlinked = map[string]string{
	"GET /dashboard/sign-in":  "people without a session come there",
	"POST /dashboard/sign-in": "people without a session do it",
	"GET /dashboard/confirm":  "what is dangerous leads there",

	"POST /dashboard/sign-in/mail":              "the form is there with an SMTP server",
	"GET /dashboard/invitation":                 "a mail leads there",
	"POST /dashboard/invitation":                "a mail leads there",
	"POST /dashboard/invitations/{id}/withdraw": "the form is there after an invitation by mail",

	"POST /dashboard/sign-in/passkey":        "the script asks for it",
	"POST /dashboard/sign-in/passkey/finish": "the form is there at a host name",
	"GET /dashboard/passkeys/new":            "of people without a key",
	"POST /dashboard/passkeys/add":           "of people without a key",
	"POST /dashboard/passkeys":               "of people without a key",
	"POST /dashboard/passkeys/confirm":       "of people without a key",
	"POST /dashboard/confirm/passkey":        "of people without a key",
	"POST /dashboard/passkeys/{id}/remove":   "of people without a key",

	"POST /dashboard/confirm": "what is dangerous leads there",

	"POST /dashboard/approvals/{id}/vote": "of people without a key",
	"POST /dashboard/approvals/{id}/use":  "the form is there once people have approved",

	"GET /dashboard/refunds/{id}/wallet": "the script that talks to a wallet reads it",
	"GET /dashboard/live":                "the script of open pages reads it",
	"GET /dashboard/settings/logo":       "an image of the merchant's page",
	"GET /dashboard/search/suggestions":  "the script of the search field reads it",

	"POST /dashboard/events/redeliver": "the form is there after days of failures",
	"POST /dashboard/webhook/secret":   "the form is there until a secret is made",

	"POST /dashboard/operator/chains/{chainKey}/resume": "the form is there while a chain is halted",
}

// TestEveryPageIsLinked follows all links of a merchant's and of the operator's pages. They lead to
// pages, and a page or form leads to each route.
func TestEveryPageIsLinked(t *testing.T) {
	t.Parallel()
	f, table := fill(newWorld(t), plain, 0), newRouteTable()
	reached := make(map[string]bool)
	for name, p := range map[string]*person{"owner": f.owner, "operator": f.operator} {
		s := p.crawl(t, table, "/dashboard", "/dashboard?merchantId=cafe")
		for _, at := range s.places {
			reached[at.pattern] = true
			expect.Equal(t, at.page.status, http.StatusOK, "the %s's link to %s answers", name, at.path)
		}
		for pattern := range s.forms {
			reached[pattern] = true
		}
		t.Logf("the %s reaches %d pages and %d forms", name, len(s.places), len(s.forms))
	}
	for _, pattern := range table.patterns() {
		if !reached[pattern] && unlinked[pattern] == "" {
			t.Errorf("no link or form leads to %s: link it, give the merchant of fill an object of it, or say in unlinked why nothing does", pattern)
		}
	}
}

// mark is in all texts of the merchant cafe.
const mark = "known-to-the-cafe-alone"

// marked returns a text with the mark.
func marked(field string) string {
	if field == "support contact" {
		return "https://cafe.example/" + mark
	}
	return field + " " + mark
}

// request is a request of a route about an object of cafe, as its owner's pages have it.
type request struct {
	pattern string
	route   webpage.Route
	path    string
	values  url.Values
}

// requests returns a request of each route that needs a session, as links and forms make it.
func (f *filled) requests(t *testing.T, table *routeTable) (all []request) {
	t.Helper()
	own, operators := f.owner.crawl(t, table, "/dashboard"), f.operator.crawl(t, table, "/dashboard", "/dashboard?merchantId=cafe")
	for _, pattern := range table.patterns() {
		r := request{pattern: pattern, route: table.routes[pattern]}
		method, path, _ := strings.Cut(pattern, " ")
		for _, s := range []site{own, operators} {
			if r.path == "" && method == http.MethodGet {
				r.path = s.first(pattern)
			} else if r.path == "" {
				r.path, r.values = s.forms[pattern].action, s.forms[pattern].values
			}
		}
		if r.path == "" && unlinked[pattern] != "" {
			r.path = path
		}
		if r.path == "" {
			t.Errorf("there is no request of %s; see TestEveryPageIsLinked", pattern)
		} else if r.route.Credential != webpage.NoCredential {
			all = append(all, r)
		}
	}
	return all
}

// merchantInAddress is the merchant that an address names.
var merchantInAddress = regexp.MustCompile(`merchantId=\w+`)

// make makes the request for the person's own merchant, with values added to its query.
func (p *person) make(r request, query string) answer {
	p.t.Helper()
	path := r.path
	if p.merchantID != "" {
		path = merchantInAddress.ReplaceAllString(path, "merchantId="+p.merchantID)
	}
	if query != "" {
		path += map[bool]string{false: "?", true: "&"}[strings.Contains(path, "?")] + query
	}
	if strings.HasPrefix(r.pattern, "GET ") {
		return p.get(path)
	}
	return p.post(path, r.values)
}

// streamed is the route with an answer that does not end. TestLive covers its messages.
const streamed = "GET /dashboard/live"

// TestMatrix makes a request of each route as each kind of person: no person sees or does more than permitted.
func TestMatrix(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := fill(w, marked, 0)
	w.operator.api("POST", "/api/merchants", member{"id": "rival", "name": "Rival"}, nil)
	all := f.requests(t, newRouteTable())
	without := map[string]*person{"nobody": w.guest(), "an ended session": f.ended(), "a revoked key": f.revoked()}
	roles := map[string]*person{"read-only": w.person("cafe", access.Read), "support": w.person("cafe", access.Support), "finance": w.person("cafe", access.Finance), "developer": w.person("cafe", access.Developer)}
	rival := w.person("rival", access.Admin)
	before := f.acts()
	for _, r := range all {
		for name, p := range without {
			p.wantSignIn(t, name, r.changed(anonymous))
		}
		if r.pattern == streamed {
			continue
		}
		for name, p := range roles {
			p.wantRole(t, name, r)
		}
		f.wantNothing(t, rival, r)
		if strings.HasPrefix(r.pattern, "GET ") && unlinked[r.pattern] == "" {
			w.operator.make(r, "merchantId=cafe").want(t, http.StatusOK)
		}
	}
	if after := f.acts(); after != before {
		t.Errorf("the audit log of cafe had %d entries, and has %d", before, after)
	}
	f.wantFilters(t, rival, all)
}

// ended returns a person after the owner ended the session.
func (f *filled) ended() *person {
	f.t.Helper()
	p := f.person("cafe", access.Admin)
	sessions, err := access.Sessions(f.t.Context(), f.store, access.SessionFilter{MerchantID: "cafe", Limit: 100})
	expect.OK(f.t, err)
	for _, s := range sessions {
		if s.KeyID == p.id {
			f.owner.post("/dashboard/sessions/"+s.ID+"/end", nil).want(f.t, http.StatusOK)
		}
	}
	return p
}

// revoked returns a person after the owner revoked the key.
func (f *filled) revoked() *person {
	f.t.Helper()
	p := f.person("cafe", access.Admin)
	f.owner.post("/dashboard/keys/"+p.id+"/revoke", nil).want(f.t, http.StatusOK)
	return p
}

// acts returns how many entries the audit log of cafe has.
func (f *filled) acts() (n int) {
	f.t.Helper()
	query := url.Values{"merchantId": {"cafe"}, "limit": {"100"}}
	for {
		var page apitypes.AuditList
		f.operator.api("GET", "/api/audit?"+query.Encode(), nil, &page)
		if n += len(page.Entries); page.NextCursor == "" {
			return n
		}
		query.Set("cursor", page.NextCursor)
	}
}

// wantSignIn expects a person without a session to be sent to the sign-in, or to be refused.
func (p *person) wantSignIn(t *testing.T, who string, r request) {
	t.Helper()
	got := p.make(r, "")
	isRefused := got.status == http.StatusUnauthorized
	if strings.HasPrefix(r.pattern, "GET ") {
		isRefused = got.status == http.StatusOK && strings.HasPrefix(got.path, "/dashboard/sign-in?")
	}
	if !isRefused || strings.Contains(got.body, mark) {
		t.Errorf("%s, %s: answered %d %s", who, r.pattern, got.status, got.path)
	}
}

// wantRole expects a route's page for people with its scope, and a refusal for others. It does not
// send the request that makes the change.
func (p *person) wantRole(t *testing.T, who string, r request) {
	t.Helper()
	isAllowed := r.route.Credential != webpage.OperatorSession && (r.route.Scope == "" || p.scopes.Has(r.route.Scope))
	if isAllowed && (strings.HasPrefix(r.pattern, "POST ") || unlinked[r.pattern] != "") {
		return
	}
	want := http.StatusForbidden
	if isAllowed {
		want = http.StatusOK
	}
	got := p.make(r, "")
	_, below, _ := strings.Cut(got.body, "</header>") // which names the person's own merchant
	if got.status != want || !isAllowed && strings.Contains(below, mark) {
		t.Errorf("%s, %s: answered %d, want %d", who, r.pattern, got.status, want)
	}
}

// objectID matches the ids of objects.
var objectID = regexp.MustCompile(`\b[a-z]{2,5}_[0-9a-z]{26}\b`)

// unknown returns a text with ids of the same form that do not exist.
func unknown(text string) string {
	return objectID.ReplaceAllStringFunc(text, func(id string) string { return id[:len(id)-6] + "000000" })
}

// anonymous returns a text without the mark.
func anonymous(text string) string { return strings.ReplaceAll(text, mark, "typed") }

// changed returns the request with another path and values.
func (r request) changed(change func(string) string) request {
	values := make(url.Values)
	for name, all := range r.values {
		for _, v := range all {
			values.Add(name, change(v))
		}
	}
	r.path, r.values = change(r.path), values
	return r
}

// wantNothing has the owner of another merchant make the request. The answer is the same as for unknown objects.
func (f *filled) wantNothing(t *testing.T, rival *person, r request) {
	t.Helper()
	if strings.HasPrefix(r.pattern, "POST ") { // it may end the session
		rival = f.person("rival", access.Admin)
	}
	if r.route.Credential != webpage.OperatorSession && unlinked[r.pattern] != "" {
		return
	}
	if named := r.changed(anonymous); r.path != named.path {
		if got, missing := rival.make(r, ""), rival.make(named, ""); anonymous(got.Words()) != missing.Words() || got.status != missing.status {
			t.Errorf("%s: another merchant's person is answered %d %s; with an unknown name %d %s", r.pattern, got.status, got.Words(), missing.status, missing.Words())
		}
	}
	r = r.changed(anonymous)
	for _, query := range []string{"", "merchantId=cafe"} {
		got := rival.make(r, query)
		if strings.Contains(got.body, mark) {
			t.Errorf("%s?%s: another merchant's person reads %s", r.pattern, query, got.Words())
		}
		if r.route.Credential == webpage.OperatorSession && got.status != http.StatusForbidden && got.status != http.StatusNotFound {
			t.Errorf("%s: another merchant's person is answered %d", r.pattern, got.status)
		}
		if !strings.Contains(r.pattern, "{id}") {
			continue
		}
		missing := rival.make(r.changed(unknown), query)
		if got.status != http.StatusNotFound || unknown(got.body) != unknown(missing.body) || got.status != missing.status {
			t.Errorf("%s?%s: another merchant's person is answered %d %s; about an unknown object %d %s", r.pattern, query, got.status, got.Words(), missing.status, missing.Words())
		}
	}
}

// wantFilters fills each field of the lists' filters with ids of cafe. A person of another merchant
// finds the same as for unknown ids.
func (f *filled) wantFilters(t *testing.T, rival *person, all []request) {
	t.Helper()
	var ids []string
	for _, r := range all {
		ids = append(ids, objectID.FindAllString(r.path, -1)...)
	}
	n := 0
	for _, r := range all {
		if !strings.HasPrefix(r.pattern, "GET ") || strings.Contains(r.pattern, "{id}") || r.pattern == streamed || r.route.Credential == webpage.OperatorSession {
			continue
		}
		path, _, _ := strings.Cut(r.path, "?")
		for _, form := range rival.get(path).Forms() {
			if form.Attrs["method"] == "post" {
				continue
			}
			for name := range form.Values() {
				for _, id := range ids {
					n++
					got, missing := rival.get(form.Attrs["action"]+"?"+name+"="+id), rival.get(form.Attrs["action"]+"?"+name+"="+unknown(id))
					if strings.Contains(got.body, mark) || got.status != missing.status || unknown(got.Words()) != unknown(missing.Words()) {
						t.Errorf("%s with %s=%s: another merchant's person reads %d %s; for an unknown id %d %s", path, name, id, got.status, got.Words(), missing.status, missing.Words())
					}
				}
			}
		}
	}
	if n == 0 {
		t.Error("no page has a filter")
	}
}
