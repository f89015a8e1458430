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
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/web/checkout/locale"
	"github.com/quittance/quittance/internal/web/webpage"
)

// visit is what a page knows about the person who asks for it. Without a session, only the texts are set.
type visit struct {
	session   access.Session
	principal access.Principal
	text      *locale.Text
	// merchant is the merchant of the page: the person's own or, for the operator, the one in the
	// parameter merchantId; empty for all.
	merchant string
	profile  apitypes.Merchant   // of the merchant, if it has one and the person may see it
	others   []access.Membership // among which the person may switch, with the present one; else nil
	zone     *time.Location      // of the merchant; nil is UTC
	here     string              // path of the page
	address  string              // of the page, with its query
	plays    bool                // the person may play scenarios
	chains   map[string]chain.Chain
	counts   []apitypes.InboxCount // of the inbox; nil before inboxCounts
	err      error                 // the first one of get
	// approvals is how many requests for approval are open.
	approvals int
}

// Can reports whether the person has a scope. It is for templates.
func (v *visit) Can(scope access.Scope) bool { return v.principal.Can(scope) }

// IsOperator reports whether the person is the operator. It is for templates.
func (v *visit) IsOperator() bool { return v.principal.IsOperator() }

// SignedIn reports whether there is a session. It is for templates.
func (v *visit) SignedIn() bool { return v.session.ID != "" }

// Merchant returns the merchant that the page is about, or "". It is for templates.
func (v *visit) Merchant() string { return v.merchant }

// Link returns the address of a page of the dashboard. It names the merchant that this page is about, so that the page
// does not act for the merchant of another session that begins in the same browser. Pairs of a name and a value are
// added to its query, except pairs with an empty value.
func (v *visit) Link(path string, pairs ...string) string {
	query := v.query()
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

// query returns the query of a request to the REST interface about the page's merchant, with pairs of a name and a value.
func (v *visit) query(pairs ...string) url.Values {
	query := make(url.Values)
	if v.merchant != "" {
		query.Set("merchantId", v.merchant)
	}
	for pair := range slices.Chunk(pairs, 2) {
		query.Set(pair[0], pair[1])
	}
	return query
}

// Zone returns the time zone of the page's times and days, which is the merchant's. It is for templates.
func (v *visit) Zone() *time.Location {
	if v.zone == nil {
		return time.UTC
	}
	return v.zone
}

// describe sets the profile and the time zone of the visit's merchant, if the person may see them.
func (d *Dashboard) describe(ctx context.Context, v *visit) error {
	if v.merchant == "" || !v.Can(access.InvoicesRead) {
		return nil
	}
	var answer apitypes.MerchantResponse
	err := d.service.get(ctx, id("/api/merchants", v.merchant), nil, &answer)
	if isNotFound(err) {
		return nil // a merchant without a profile
	}
	v.profile = answer.Merchant
	v.zone, _ = invoice.ParseTimezone(answer.Merchant.Timezone)
	return err
}

type visitKey struct{}

// visitIn returns the visit in the context of a request. Without one, it returns a visit in English.
func visitIn(ctx context.Context) *visit {
	if v, ok := ctx.Value(visitKey{}).(*visit); ok {
		return v
	}
	return &visit{text: texts().English()}
}

// withVisit returns a request with a visit: its own, or one without a session.
func withVisit(r *http.Request) *http.Request {
	if _, ok := r.Context().Value(visitKey{}).(*visit); ok {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), visitKey{}, &visit{text: texts().For(r), here: r.URL.Path}))
}

// visitOf returns the visit of a request.
func visitOf(r *http.Request) *visit { return visitIn(withVisit(r).Context()) }

// errSignedOut is the error of a request without a session.
var errSignedOut = errors.New("dashboard: not signed in")

// WithSession returns a handler that passes a request to next with the principal of its
// session. It sends people without a session to the page on which they sign in.
func (d *Dashboard) WithSession(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, p, err := d.findSession(r)
		switch {
		case errors.Is(err, access.ErrSignedOut) && r.Method == http.MethodGet:
			webpage.SetHeaders(w, policy)
			_ = lead(w, r, "/dashboard/sign-in?"+url.Values{"next": {r.URL.RequestURI()}}.Encode())
			return
		case errors.Is(err, access.ErrSignedOut):
			err = errSignedOut
		}
		if err != nil {
			d.WriteError(w, r, err)
			return
		}
		v := &visit{session: s, principal: p, text: texts().For(r), here: r.URL.Path, chains: d.chains}
		if s.Language != "" {
			v.text = texts().Named(s.Language)
		}
		ctx := context.WithValue(r.Context(), visitKey{}, v)
		if err := d.choose(ctx, v, r.URL.Query().Get("merchantId")); err != nil {
			d.WriteError(w, r.WithContext(ctx), err)
			return
		}
		v.principal.Version = "" // pages read the newest version of the interface
		v.plays = d.cfg.Player != nil && v.IsOperator()
		ctx = access.WithPrincipal(ctx, v.principal)
		ctx = access.WithRecheck(ctx, func(ctx context.Context) error { return d.recheck(r.WithContext(ctx)) })
		if err := d.describe(ctx, v); err != nil {
			d.WriteError(w, r.WithContext(ctx), err)
			return
		}
		if v.address = r.URL.RequestURI(); r.Method != http.MethodGet {
			v.address = v.Link(v.here)
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// choose sets the merchant of a visit, and the principal for it: to the merchant that a request names, if the session
// sees it, else the error is errNotFound; without a name, to the merchant of the session.
func (d *Dashboard) choose(ctx context.Context, v *visit, named string) (err error) {
	v.merchant = v.principal.MerchantID
	if v.others, err = d.cfg.Sessions.Memberships(ctx, v.session); err != nil || !invoice.ValidMerchantID(named) || named == v.merchant {
		return err
	}
	p, err := d.cfg.Sessions.As(ctx, v.session, named)
	switch {
	case err == nil:
		v.principal, v.merchant = p, named
	case !errors.Is(err, db.ErrNotFound):
		return err
	case v.IsOperator():
		v.merchant = named
	default:
		return errNotFound
	}
	return nil
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

// recheck returns access.ErrRevoked if the session of a request, or the membership that it acts by, has
// ended since it began.
func (d *Dashboard) recheck(r *http.Request) error {
	c, err := r.Cookie(d.cookieName())
	var s access.Session
	if err == nil {
		s, _, err = d.cfg.Sessions.Look(r.Context(), c.Value)
	}
	if v := visitOf(r); err == nil && v.principal.KeyID != s.KeyID {
		_, err = d.cfg.Sessions.As(r.Context(), s, v.principal.MerchantID)
	}
	if errors.Is(err, access.ErrSignedOut) || errors.Is(err, db.ErrNotFound) {
		return access.ErrRevoked
	}
	return err
}

// setCookie gives the browser a session's token; an empty one removes it.
func (d *Dashboard) setCookie(w http.ResponseWriter, token string) {
	d.giveCookie(w, d.cookieName(), token, access.SessionLifetime)
}

// giveCookie gives the browser a secret for some time; an empty one removes it.
func (d *Dashboard) giveCookie(w http.ResponseWriter, name, secret string, lifetime time.Duration) {
	c := &http.Cookie{Name: name, Value: secret, Path: "/", HttpOnly: true, Secure: d.cfg.Secure, SameSite: http.SameSiteLaxMode, MaxAge: int(lifetime.Seconds())} //nolint:gosec // Secure if there is HTTPS
	if secret == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// next returns the page to go to after the sign-in: pageAfter of the parameter next.
func next(r *http.Request) string { return pageAfter(r.FormValue("next")) }

// pageAfter returns the address of a page of the dashboard unchanged, and the first page's for any other text.
func pageAfter(to string) string {
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
	Key     string // that leads to the page after g, or empty
	Count   string // number of items that need a decision there, or empty
	Here    bool   // the current page belongs to it
}

// Paths of the operator's view, which only the operator sees, and of the page that the key c leads to.
const (
	pathOperator   = "/dashboard/operator"
	pathNewInvoice = "/dashboard/invoices/new"
)

// destination is a page to which people are led: its path, its text, the scope that a person needs, if any, and the key
// that leads to it after g, if any.
type destination struct {
	path, text string
	scope      access.Scope
	key        string
}

// sections are the entries of the navigation.
var sections = []destination{
	{"/dashboard", "nav.home", access.PaymentsRead, "h"},
	{"/dashboard/invoices", "nav.invoices", access.InvoicesRead, "i"},
	{pathInbox, "nav.inbox", access.PaymentsRead, "n"},
	{pathApprovals, "approvals.title", access.EventsRead, ""},
	{"/dashboard/payments", "nav.payments", access.PaymentsRead, "p"},
	{"/dashboard/refunds", "nav.refunds", access.PaymentsRead, "r"},
	{"/dashboard/statement", "nav.statement", access.PaymentsRead, ""},
	{"/dashboard/customers", "nav.customers", access.InvoicesRead, ""},
	{"/dashboard/links", "nav.links", access.InvoicesRead, "l"},
	{"/dashboard/events", "nav.events", access.EventsRead, "e"},
	{"/dashboard/webhook", "nav.webhook", access.EventsRead, ""},
	{"/dashboard/requests", "nav.requests", access.EventsRead, ""},
	{"/dashboard/keys", "nav.keys", access.KeysWrite, ""},
	{"/dashboard/settings", "invoice.merchant", access.InvoicesRead, ""},
	{pathOperator, "nav.operator", access.EventsRead, ""},
	{pathScenarios, "nav.scenarios", "", ""},
}

// actions are the pages on which a person does something.
var actions = []destination{
	{pathNewInvoice, "invoices.new", access.InvoicesWrite, ""},
	{"/dashboard/links/new", "links.new", access.InvoicesWrite, ""},
	{"/dashboard/inbox/decisions", "decisions.title", access.PaymentsRead, ""},
	{"/dashboard/events/redeliver", "redeliver.title", access.EventsRedeliver, ""},
	{"/dashboard/sessions", "nav.sessions", "", ""},
}

// Sections returns the entries of the navigation that the person may use. It is for templates.
func (v *visit) Sections() []section { return v.sectionsOf(sections) }

// Actions returns the pages on which the person may do something. It is for templates.
func (v *visit) Actions() []section { return v.sectionsOf(actions) }

func (v *visit) sectionsOf(pages []destination) (all []section) {
	counts := map[string]string{pathInbox: shortCount(v.counts), pathApprovals: shortCount([]apitypes.InboxCount{{Count: v.approvals}})}
	for _, s := range pages {
		if (s.scope == "" || v.Can(s.scope)) && (s.path != pathOperator || v.IsOperator()) && (s.path != pathScenarios || v.plays) {
			here := v.here == s.path || s.path != "/dashboard" && strings.HasPrefix(v.here, s.path+"/")
			all = append(all, section{s.text, v.Link(s.path), s.key, counts[s.path], here})
		}
	}
	return all
}

// Here returns the address of the page. It is for templates.
func (v *visit) Here() string { return v.address }
