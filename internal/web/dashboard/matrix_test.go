package dashboard_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/webpage"
)

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

// make makes the request, with values added to its query.
func (p *person) make(r request, query string) answer {
	p.t.Helper()
	path := r.path
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
		if got, missing := rival.make(r, ""), rival.make(named, ""); anonymous(got.words()) != missing.words() || got.status != missing.status {
			t.Errorf("%s: another merchant's person is answered %d %s; with an unknown name %d %s", r.pattern, got.status, got.words(), missing.status, missing.words())
		}
	}
	r = r.changed(anonymous)
	for _, query := range []string{"", "merchantId=cafe"} {
		got := rival.make(r, query)
		if strings.Contains(got.body, mark) {
			t.Errorf("%s?%s: another merchant's person reads %s", r.pattern, query, got.words())
		}
		if r.route.Credential == webpage.OperatorSession && got.status != http.StatusForbidden {
			t.Errorf("%s: another merchant's person is answered %d", r.pattern, got.status)
		}
		if !strings.Contains(r.pattern, "{id}") {
			continue
		}
		missing := rival.make(r.changed(unknown), query)
		if got.status != http.StatusNotFound || unknown(got.body) != unknown(missing.body) || got.status != missing.status {
			t.Errorf("%s?%s: another merchant's person is answered %d %s; about an unknown object %d %s", r.pattern, query, got.status, got.words(), missing.status, missing.words())
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
		for _, form := range rival.get(path).forms() {
			if form.attrs["method"] == "post" {
				continue
			}
			for name := range form.values() {
				for _, id := range ids {
					n++
					got, missing := rival.get(form.attrs["action"]+"?"+name+"="+id), rival.get(form.attrs["action"]+"?"+name+"="+unknown(id))
					if strings.Contains(got.body, mark) || got.status != missing.status || unknown(got.words()) != unknown(missing.words()) {
						t.Errorf("%s with %s=%s: another merchant's person reads %d %s; for an unknown id %d %s", path, name, id, got.status, got.words(), missing.status, missing.words())
					}
				}
			}
		}
	}
	if n == 0 {
		t.Error("no page has a filter")
	}
}
