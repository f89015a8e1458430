package dashboard

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/web/checkout/locale"
	"github.com/quittance/quittance/internal/web/webpage"
)

// visit is what a page knows about the person who asks for it. Without a session, only the texts are
// set.
type visit struct {
	session   access.Session
	principal access.Principal
	text      *locale.Text
	// merchant is the merchant of the page: the person's own or, for the operator, the one in the
	// parameter merchantId; empty for all.
	merchant string
	zone     *time.Location // of the merchant; nil is UTC
	here     string         // path of the page
	plays    bool           // the person may play scenarios
	chains   map[string]chain.Chain
	counts   []apitypes.InboxCount // of the inbox; nil before inboxCounts
}

// Can reports whether the person has a scope. It is for templates.
func (v *visit) Can(scope access.Scope) bool { return v.principal.Can(scope) }

// IsOperator reports whether the person is the operator. It is for templates.
func (v *visit) IsOperator() bool { return v.principal.IsOperator() }

// SignedIn reports whether there is a session. It is for templates.
func (v *visit) SignedIn() bool { return v.session.ID != "" }

// Merchant returns the merchant that the page is about, or "". It is for templates.
func (v *visit) Merchant() string { return v.merchant }

// Link returns the address of a page of the dashboard. For the operator, it keeps the merchant that
// this page is about. Pairs of a name and a value are added to its query, except pairs with an empty
// value.
func (v *visit) Link(path string, pairs ...string) string {
	query := make(url.Values)
	if v.IsOperator() && v.merchant != "" {
		query.Set("merchantId", v.merchant)
	}
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			query.Set(pair[0], pair[1])
		}
	}
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// query returns the query of a request to the REST interface about the page's merchant.
func (v *visit) query() url.Values {
	query := make(url.Values)
	if v.merchant != "" {
		query.Set("merchantId", v.merchant)
	}
	return query
}

// Zone returns the time zone of the page's times and days, which is the merchant's. It is for
// templates.
func (v *visit) Zone() *time.Location {
	if v.zone == nil {
		return time.UTC
	}
	return v.zone
}

// zoneOf returns a merchant's time zone, or nil to people who may not see the merchant.
func (d *Dashboard) zoneOf(ctx context.Context, v *visit) (*time.Location, error) {
	if v.merchant == "" || !v.Can(access.InvoicesRead) {
		return nil, nil //nolint:nilnil // nil is UTC
	}
	var answer apitypes.MerchantResponse
	err := d.service.get(ctx, id("/api/merchants", v.merchant), nil, &answer)
	if refused := (*problem)(nil); errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		return nil, nil //nolint:nilnil // a merchant without a profile
	}
	zone, _ := invoice.ParseTimezone(answer.Merchant.Timezone)
	return zone, err
}

type visitKey struct{}

// visitOf returns the visit of a request.
func visitOf(r *http.Request) *visit {
	v, _ := r.Context().Value(visitKey{}).(*visit)
	if v == nil {
		v = &visit{text: texts().For(r), here: r.URL.Path}
	}
	return v
}

// errSignedOut is the error of a request without a session.
var errSignedOut = errors.New("dashboard: not signed in")

// WithSession returns a handler that passes a request to next with the principal of its
// session. It sends people without a session to the page on which they sign in.
func (d *Dashboard) WithSession(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, p, err := d.findSession(r)
		switch {
		case errors.Is(err, access.ErrSignedOut) && r.Method == http.MethodGet:
			setHeaders(w)
			seeOther(w, r, "/dashboard/sign-in?"+url.Values{"next": {r.URL.RequestURI()}}.Encode())
			return
		case errors.Is(err, access.ErrSignedOut):
			err = errSignedOut
		}
		if err != nil {
			d.WriteError(w, r, err)
			return
		}
		p.Version = "" // pages read the newest version of the interface
		v := &visit{session: s, principal: p, text: texts().For(r), merchant: p.MerchantID, here: r.URL.Path, chains: d.chains, plays: d.cfg.Player != nil && p.IsOperator()}
		if s.Language != "" {
			v.text = texts().Named(s.Language)
		}
		if named := r.URL.Query().Get("merchantId"); p.IsOperator() && invoice.ValidMerchantID(named) {
			v.merchant = named
		}
		ctx := access.WithPrincipal(context.WithValue(r.Context(), visitKey{}, v), p)
		ctx = access.WithRecheck(ctx, func(ctx context.Context) error { return d.recheck(r.WithContext(ctx)) })
		if v.zone, err = d.zoneOf(ctx, v); err != nil {
			d.WriteError(w, r.WithContext(ctx), err)
			return
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// Allow returns a handler that passes a request to next if the person of its session has the required
// scope, if any, and is the operator if that is required.
func (d *Dashboard) Allow(route webpage.Route, next http.Handler) http.Handler {
	operator, scope := route.Credential == webpage.OperatorSession, route.Scope
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := visitOf(r)
		if operator && !v.IsOperator() || scope != "" && !v.Can(scope) {
			d.WriteError(w, r, errForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// cookieName returns the name of the cookie with the session's token. Browsers accept the
// prefix only from HTTPS, and only for this host.
func (d *Dashboard) cookieName() string {
	if d.cfg.Secure {
		return "__Host-quittance"
	}
	return "quittance"
}

// headerRefresh marks requests that an open page makes without the person.
const headerRefresh = "Quittance-Refresh"

// findSession returns the session of a request. Requests that an open page makes without the person do
// not extend the session.
func (d *Dashboard) findSession(r *http.Request) (access.Session, access.Principal, error) {
	c, err := r.Cookie(d.cookieName())
	if err != nil {
		return access.Session{}, access.Principal{}, access.ErrSignedOut
	}
	if r.URL.Path == pathLive || r.Header.Get(headerRefresh) != "" {
		return d.cfg.Sessions.Look(r.Context(), c.Value)
	}
	return d.cfg.Sessions.Find(r.Context(), c.Value)
}

// HasCookie reports whether a request has the cookie of a session, right or wrong.
func (d *Dashboard) HasCookie(r *http.Request) bool {
	_, err := r.Cookie(d.cookieName())
	return err == nil
}

// recheck returns access.ErrRevoked if the session of a request has ended since it began.
func (d *Dashboard) recheck(r *http.Request) error {
	c, err := r.Cookie(d.cookieName())
	if err == nil {
		_, _, err = d.cfg.Sessions.Look(r.Context(), c.Value)
	}
	if errors.Is(err, access.ErrSignedOut) {
		return access.ErrRevoked
	}
	return err
}

// setCookie gives the browser a session's token; an empty one removes it.
func (d *Dashboard) setCookie(w http.ResponseWriter, token string) {
	c := &http.Cookie{Name: d.cookieName(), Value: token, Path: "/", HttpOnly: true, Secure: d.cfg.Secure, SameSite: http.SameSiteLaxMode, MaxAge: int(access.SessionLifetime.Seconds())} //nolint:gosec // Secure if there is HTTPS
	if token == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// next returns the page to go to after the sign-in: the parameter next if it is a page of the
// dashboard, else the first page.
func next(r *http.Request) string {
	to := r.FormValue("next")
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Path != "/dashboard" && !strings.HasPrefix(u.Path, "/dashboard/") ||
		strings.ContainsAny(to, "\\\r\n\t") || path.Clean(u.Path) != u.Path || strings.HasPrefix(u.Path, "/dashboard/sign-") {
		return "/dashboard"
	}
	return u.RequestURI()
}

// section is an entry of the navigation.
type section struct {
	Text    string // id
	Address string
	Count   string // number of items that need a decision there, or empty
	Here    bool   // the current page belongs to it
}

// pathOperator is the path of the operator's view. Only the operator sees it.
const pathOperator = "/dashboard/operator"

// sections are the entries of the navigation: the page's path, its text, and the scope that a person
// needs, if any.
var sections = []struct {
	path, text string
	scope      access.Scope
}{
	{"/dashboard", "nav.home", access.PaymentsRead},
	{"/dashboard/invoices", "nav.invoices", access.InvoicesRead},
	{pathInbox, "nav.inbox", access.PaymentsRead},
	{"/dashboard/payments", "nav.payments", access.PaymentsRead},
	{"/dashboard/refunds", "nav.refunds", access.PaymentsRead},
	{"/dashboard/statement", "nav.statement", access.PaymentsRead},
	{"/dashboard/customers", "nav.customers", access.InvoicesRead},
	{"/dashboard/links", "nav.links", access.InvoicesRead},
	{"/dashboard/events", "nav.events", access.EventsRead},
	{"/dashboard/webhook", "nav.webhook", access.EventsRead},
	{"/dashboard/requests", "nav.requests", access.EventsRead},
	{"/dashboard/keys", "nav.keys", access.KeysWrite},
	{"/dashboard/settings", "nav.settings", access.InvoicesRead},
	{pathOperator, "nav.operator", access.EventsRead},
	{pathScenarios, "nav.scenarios", ""},
}

// Sections returns the entries of the navigation that the person may use. It is for templates.
func (v *visit) Sections() []section {
	var all []section
	for _, s := range sections {
		if (s.scope == "" || v.Can(s.scope)) && (s.path != pathOperator || v.IsOperator()) && (s.path != pathScenarios || v.plays) {
			entry := section{Text: s.text, Address: v.Link(s.path), Here: v.here == s.path || s.path != "/dashboard" && strings.HasPrefix(v.here, s.path+"/")}
			if s.path == pathInbox {
				entry.Count = shortCount(v.counts)
			}
			all = append(all, entry)
		}
	}
	return all
}

// actions are the pages on which a person does something: the page's path, its text, and the scope that a person needs,
// if any.
var actions = []struct {
	path, text string
	scope      access.Scope
}{
	{pathNewInvoice, "invoices.new", access.InvoicesWrite},
	{"/dashboard/links/new", "links.new", access.InvoicesWrite},
	{"/dashboard/inbox/decisions", "decisions.title", access.PaymentsRead},
	{"/dashboard/events/redeliver", "redeliver.title", access.EventsRedeliver},
	{"/dashboard/sessions", "nav.sessions", ""},
}

// Actions returns the pages on which the person may do something. It is for templates.
func (v *visit) Actions() (all []section) {
	for _, a := range actions {
		if a.scope == "" || v.Can(a.scope) {
			all = append(all, section{Text: a.text, Address: v.Link(a.path)})
		}
	}
	return all
}

// Here returns the address of the page. It is for templates.
func (v *visit) Here() string { return v.here }
