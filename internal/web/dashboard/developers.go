package dashboard

import (
	"net/http"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/web/webpage"
)

// developerRoutes returns the routes of the merchant, people, keys, the webhook endpoint,
// requests and events.
func (d *Dashboard) developerRoutes() []webpage.Route {
	// dangerous wraps actions that grant or revoke access, and leads back to a page.
	dangerous := func(pattern string, scope access.Scope, page string, h handler) webpage.Route {
		back := func(r *http.Request) string { return visitOf(r).Link(page) }
		return d.route(pattern, scope, d.confirmed(h, back))
	}
	return []webpage.Route{
		d.route("GET /dashboard/keys", access.KeysWrite, d.keys),
		d.route("GET /dashboard/keys/new", access.KeysWrite, d.confirmed(d.newKey, func(r *http.Request) string {
			return visitOf(r).Link("/dashboard/keys/new", "for", r.FormValue("for"))
		})),
		dangerous("POST /dashboard/keys", access.KeysWrite, "/dashboard/keys", d.createKey),
		d.route("GET /dashboard/keys/{id}", access.KeysWrite, showing(d.showKey)),
		dangerous("POST /dashboard/keys/{id}/rotate", access.KeysWrite, "/dashboard/keys", d.rotateKey),
		dangerous("POST /dashboard/keys/{id}/revoke", access.KeysWrite, "/dashboard/keys", d.revokeKey),
		dangerous("POST /dashboard/keys/{id}/link", access.KeysWrite, "/dashboard/keys", d.linkKey),
		d.route("GET /dashboard/settings", access.InvoicesRead, d.settings),
		d.route("POST /dashboard/settings", access.KeysWrite, ofMerchant(d.setProfile)),
		dangerous("POST /dashboard/settings/rules", access.KeysWrite, "/dashboard/settings", ofMerchant(d.setRules)),
		dangerous("POST /dashboard/settings/defaults", access.KeysWrite, "/dashboard/settings", ofMerchant(d.setDefaults)),
		d.route("GET /dashboard/settings/logo", access.InvoicesRead, ofMerchant(d.logo)),
		d.route("POST /dashboard/settings/logo", access.KeysWrite, ofMerchant(d.setLogo), webpage.BodyUpTo(LogoFormBytes, MaxLogoForm)),
		d.route("POST /dashboard/settings/logo/remove", access.KeysWrite, ofMerchant(d.removeLogo)),
		dangerous("POST /dashboard/settings/addresses", access.KeysWrite, "/dashboard/settings", ofMerchant(d.setAddresses)),
		d.route("GET /dashboard/webhook", access.EventsRead, d.webhook),
		dangerous("POST /dashboard/webhook", access.WebhooksWrite, "/dashboard/webhook", ofMerchant(d.setWebhook)),
		d.route("POST /dashboard/webhook/ping", access.WebhooksWrite, ofMerchant(d.pingWebhook)),
		dangerous("POST /dashboard/webhook/secret", access.WebhooksWrite, "/dashboard/webhook", ofMerchant(d.stageSecret)),
		dangerous("POST /dashboard/webhook/secret/promote", access.WebhooksWrite, "/dashboard/webhook", ofMerchant(d.promoteSecret)),
		dangerous("POST /dashboard/webhook/secret/drop", access.WebhooksWrite, "/dashboard/webhook", ofMerchant(d.dropSecret)),
		d.route("GET /dashboard/requests", access.EventsRead, d.requests),
		d.route("GET /dashboard/events", access.EventsRead, d.events),
		d.route("GET /dashboard/events/redeliver", access.EventsRedeliver, d.redeliverPage),
		d.route("POST /dashboard/events/redeliver", access.EventsRedeliver, d.redeliverFailed),
		d.route("GET /dashboard/events/{id}", access.EventsRead, showing(d.showEvent)),
		d.route("GET /dashboard/events/{id}/json", access.EventsRead, d.object("/api/events")),
		d.route("POST /dashboard/events/{id}/redeliver", access.EventsRedeliver, d.redeliverEvent),
	}
}

// merchantChoice is a page on which the operator chooses the merchant for another page.
type merchantChoice struct {
	Path      string   // of the other page
	Merchants []string // the first ones, as suggestions
}

// chooseMerchant has the operator choose a merchant.
func (d *Dashboard) chooseMerchant(w http.ResponseWriter, r *http.Request, title string) error {
	var list apitypes.MerchantList
	if err := d.service.get(r.Context(), "/api/merchants", limited(nil), &list); err != nil {
		return err
	}
	choice := merchantChoice{Path: visitOf(r).here}
	for _, m := range list.Merchants {
		choice.Merchants = append(choice.Merchants, m.ID)
	}
	return d.render(w, r, http.StatusOK, "choosemerchant.html", title, choice)
}
