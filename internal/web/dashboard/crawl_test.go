package dashboard_test

import (
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
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
		for _, form := range page.forms() {
			action := form.attrs["action"]
			if form.attrs["method"] != "post" {
				values := form.values()
				maps.DeleteFunc(values, func(_ string, all []string) bool { return strings.Join(all, "") == "" })
				waiting = append(waiting, at(path, action+"?"+values.Encode()))
			}
			if of := table.of(http.MethodPost, action); form.attrs["method"] == "post" && s.forms[of].action == "" {
				s.forms[of] = filledForm{action, form.values()}
			}
		}
		for _, to := range page.links() {
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
			if at.page.status != http.StatusOK {
				t.Errorf("the %s's link to %s answers %d", name, at.path, at.page.status)
			}
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
