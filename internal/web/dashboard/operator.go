package dashboard

import (
	"cmp"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/web/webpage"
)

// operatorRoutes returns the routes of the operator's view.
func (d *Dashboard) operatorRoutes() []webpage.Route {
	route := func(pattern string, scope access.Scope, h handler, options ...webpage.RouteOption) webpage.Route {
		return d.route(pattern, scope, h, options...).With(forOperator)
	}
	// dangerous wraps actions that change the service's behaviour.
	dangerous := func(pattern string, h handler) webpage.Route {
		return route(pattern, access.KeysWrite, d.confirmed(h, func(r *http.Request) string { return id("/dashboard/operator/chains", r.PathValue("chainKey")) }))
	}
	return []webpage.Route{
		route("GET /dashboard/operator", access.EventsRead, d.operator),
		route("GET "+pathSetup, access.EventsRead, showing(d.showSetup)),
		route("POST "+pathSetup, access.KeysWrite, d.confirmed(d.createMerchant, func(*http.Request) string { return pathSetup })),
		route("GET /dashboard/operator/merchants", access.EventsRead, d.merchants),
		route("GET /dashboard/operator/chains/{chainKey}", access.EventsRead, showing(d.showChain)),
		dangerous("POST /dashboard/operator/chains/{chainKey}/rescan", d.rescanChain),
		dangerous("POST /dashboard/operator/chains/{chainKey}/resume", d.resumeChain),
		route("GET /dashboard/operator/audit", access.EventsRead, showing(d.showAudit)),
		route("POST /dashboard/operator/audit/verify", access.EventsRead, d.verifyAudit, webpage.Long),
	}
}

// operatorView is the state of the service.
type operatorView struct {
	apitypes.ServiceStatus
	Chains []operatedChain
	Inbox  apitypes.InboxCounts
	visit  *visit
}

// Coins writes a chain's limit of gwei, of which the name ends with the chain's key, in its native coin. It is for templates.
func (v operatorView) Coins(l apitypes.LimitInForce) template.HTML {
	_, chainKey, _ := strings.Cut(l.Name, ", ")
	return v.visit.coins(strconv.FormatInt(l.Value, 10), gweiDecimals, chainKey)
}

// operatedChain is a chain as the operator sees it.
type operatedChain struct {
	apitypes.ChainStatus
	Name  string
	visit *visit
}

// State returns the state of the chain in a word. It is for templates.
func (c operatedChain) State() string {
	switch {
	case c.Halted != "":
		return "halted"
	case !c.Ready:
		return "failed"
	case c.Writer != nil && c.Writer.Error != "":
		return "unwritten"
	case c.CatchUp != nil || c.Backfill != nil:
		return "reading"
	}
	return "ok"
}

// Coins writes an amount of wei in the chain's native coin. It is for templates.
func (c operatedChain) Coins(wei string) template.HTML {
	return c.visit.coins(wei, weiDecimals, c.ChainKey)
}

// CoinsOfGwei writes an amount of gwei in the chain's native coin. It is for templates.
func (c operatedChain) CoinsOfGwei(gwei string) template.HTML {
	return c.visit.coins(gwei, gweiDecimals, c.ChainKey)
}

// weiDecimals and gweiDecimals are the decimals of a native coin in wei and in gwei.
const weiDecimals, gweiDecimals = 18, 9

// readService returns the state of the service and of its chains.
func (d *Dashboard) readService(r *http.Request) (apitypes.ServiceStatus, []operatedChain) {
	v, status := visitOf(r), get[apitypes.ServiceStatus](d, r, "/api/operator/status", nil)
	return status, db.Each(status.Chains, func(c apitypes.ChainStatus) operatedChain { return operatedChain{c, v.Network(c.ChainKey), v} })
}

// operator shows the state of the service.
func (d *Dashboard) operator(w http.ResponseWriter, r *http.Request) error {
	status, chains := d.readService(r)
	view := operatorView{ServiceStatus: status, Chains: chains, visit: visitOf(r)}
	if visitOf(r).Can(access.PaymentsRead) {
		view.Inbox = get[apitypes.InboxCounts](d, r, "/api/inbox/counts", nil)
	}
	return d.render(w, r, http.StatusOK, "operator.html", "operator.title", view)
}

// merchantOverviews is the list of merchants.
type merchantOverviews struct {
	Merchants []apitypes.MerchantOverview
	Next      string
}

// merchants lists merchants with the number of their objects.
func (d *Dashboard) merchants(w http.ResponseWriter, r *http.Request) error {
	query := make(url.Values)
	filter := filtered(r, query, nil)
	list := get[apitypes.MerchantOverviewList](d, r, "/api/operator/merchants", query)
	return d.render(w, r, http.StatusOK, "merchants.html", "merchants.title", merchantOverviews{list.Merchants, nextPage(visitOf(r), filter, list.NextCursor)})
}

// chainView is the page of a chain.
type chainView struct {
	operatedChain
	Error string
	From  string // that was typed
	May   bool   // the person may change it
}

// showChain shows a chain with its nodes and its writer.
func (d *Dashboard) showChain(w http.ResponseWriter, r *http.Request, _ int, refused string) error {
	_, chains := d.readService(r)
	i := slices.IndexFunc(chains, func(c operatedChain) bool { return c.ChainKey == r.PathValue("chainKey") })
	if i < 0 {
		return cmp.Or(visitOf(r).err, error(errNotFound))
	}
	view := chainView{operatedChain: chains[i], Error: refused, May: visitOf(r).Can(access.KeysWrite)}
	if refused != "" {
		view.From = r.PostFormValue("from")
	}
	return d.render(w, r, status(refused), "chain.html", "chain.title", view)
}

// rescanChain schedules blocks of a chain to be read again.
func (d *Dashboard) rescanChain(w http.ResponseWriter, r *http.Request) error {
	return d.changeChain(w, r, "rescan", func() (any, string) {
		from, err := strconv.ParseInt(r.PostFormValue("from"), 10, 64)
		if err != nil || from < 0 {
			return nil, visitOf(r).text.T("chain.rescan.number", nil)
		}
		return apitypes.RescanRequest{From: from}, ""
	})
}

// resumeChain ends a chain's halt.
func (d *Dashboard) resumeChain(w http.ResponseWriter, r *http.Request) error {
	return d.changeChain(w, r, "resume", func() (any, string) { return struct{}{}, "" })
}

// changeChain makes a change to a chain after the person typed its key. body returns the request, or a
// text that explains what is wrong with the form.
func (d *Dashboard) changeChain(w http.ResponseWriter, r *http.Request, act string, body func() (any, string)) error {
	chainKey := r.PathValue("chainKey")
	if r.PostFormValue("confirm") != chainKey {
		return d.showChain(w, r, 0, visitOf(r).text.T("chain.confirm", map[string]any{"Chain": chainKey}))
	}
	request, wrong := body()
	if wrong != "" {
		return d.showChain(w, r, 0, wrong)
	}
	err := d.service.send(r.Context(), http.MethodPost, id("/api/operator/chains", chainKey)+"/"+act, request, nil)
	return d.outcome(w, r, err, d.showChain, id("/dashboard/operator/chains", chainKey))
}

// auditFilters are the parameters of the audit log that the REST interface takes.
var auditFilters = []string{"action"}

// auditView is the page of the audit log.
type auditView struct {
	Filter   url.Values
	Entries  []apitypes.AuditEntry
	Next     string
	Head     string // that was typed
	Error    string
	Verified *apitypes.AuditVerification // nil before it was verified
}

// showAudit lists the audit log.
func (d *Dashboard) showAudit(w http.ResponseWriter, r *http.Request, _ int, view auditView) error {
	v := visitOf(r)
	query := v.query()
	view.Filter = filtered(r, query, auditFilters)
	list := get[apitypes.AuditList](d, r, "/api/audit", query)
	view.Entries = list.Entries
	view.Next = pageAt(v, "/dashboard/operator/audit", view.Filter, list.NextCursor)
	return d.render(w, r, status(view.Error), "audit.html", "audit.title", view)
}

// verifyAudit verifies the whole audit log.
func (d *Dashboard) verifyAudit(w http.ResponseWriter, r *http.Request) error {
	if err := webpage.ClearDeadlines(w); err != nil {
		return err
	}
	view := auditView{Head: r.PostFormValue("head"), Verified: new(apitypes.AuditVerification)}
	err := d.service.send(r.Context(), http.MethodPost, "/api/operator/audit/verify", apitypes.VerifyAuditRequest{Head: view.Head}, view.Verified)
	if err := webpage.ExtendDeadlines(w); err != nil {
		return err
	}
	if view.Error, err = detail(err); err != nil {
		return err
	}
	if view.Error != "" {
		view.Verified = nil
	}
	return d.showAudit(w, r, 0, view)
}
