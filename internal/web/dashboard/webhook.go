package dashboard

import (
	"net/http"
	"slices"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// webhookView is the page of a webhook endpoint.
type webhookView struct {
	apitypes.Webhook
	Set    bool   // there is an endpoint
	Typed  string // URL in the form
	Error  string
	Ping   *apitypes.Attempt    // just created
	Secret string               // just created
	Staged bool                 // a secret is staged
	May    bool                 // the person may change it
	Lines  string               // headers in the form, one a line
	Chosen []apitypes.EventType // in the form
}

// Always returns the types of events that every endpoint gets. It is for templates.
func (webhookView) Always() (types []invoice.EventType) {
	for _, typ := range invoice.EventTypes {
		if !slices.Contains(invoice.OptionalEventTypes, typ) {
			types = append(types, typ)
		}
	}
	return types
}

// Optional returns the other types of events. It is for templates.
func (webhookView) Optional() []invoice.EventType { return invoice.OptionalEventTypes }

// Wanted reports whether the form chooses events of an optional type. It is for templates.
func (v webhookView) Wanted(typ invoice.EventType) bool {
	return slices.Contains(v.Chosen, apitypes.EventType(typ))
}

// PingOK reports whether the ping succeeded. It is for templates.
func (v webhookView) PingOK() bool {
	return v.Ping != nil && v.Ping.Error == "" && v.Ping.StatusCode >= 200 && v.Ping.StatusCode < 300
}

// showWebhook shows the endpoint with the result of a request.
func (d *Dashboard) showWebhook(w http.ResponseWriter, r *http.Request, status int, view webhookView) error {
	v := visitOf(r)
	if v.merchant == "" {
		return d.chooseMerchant(w, r, "nav.webhook")
	}
	answer, set := find[apitypes.WebhookResponse](d, r, webhookPath(r))
	view.Webhook, view.Set = answer.Webhook, set
	if view.Typed == "" {
		view.Typed, view.Lines, view.Chosen = view.URL, headerLines(view.HeaderNames), view.OptionalEvents
	}
	view.Staged = slices.ContainsFunc(view.Secrets, func(s apitypes.WebhookSecret) bool { return s.State == "staged" })
	view.May = v.Can(access.WebhooksWrite) && !view.Configured
	return d.render(w, r, status, "webhook.html", "nav.webhook", view)
}

// webhookPath returns the path of the endpoint at the interface.
func webhookPath(r *http.Request) string {
	return id("/api/merchants", visitOf(r).merchant) + "/webhook"
}

// sendWebhook makes a request about the endpoint. If it is refused, the reason is shown next to the
// form; otherwise done answers.
func (d *Dashboard) sendWebhook(w http.ResponseWriter, r *http.Request, method, act string, body, answer any, done func() error) error {
	err := d.service.send(r.Context(), method, webhookPath(r)+act, body, answer)
	refused, err := detail(err)
	if refused != "" {
		return d.showWebhook(w, r, http.StatusConflict, webhookView{Error: refused, Typed: r.PostFormValue("url"), Lines: r.PostFormValue("headers"), Chosen: optionalEvents(r)})
	}
	if err != nil {
		return err
	}
	return done()
}

// toWebhook leads to the page of the endpoint.
func (d *Dashboard) toWebhook(w http.ResponseWriter, r *http.Request) func() error {
	return func() error {
		return d.redirect(w, r, nil, "/dashboard/webhook")
	}
}

// setWebhook sets the endpoint. It shows the secret of a new one, once.
func (d *Dashboard) setWebhook(w http.ResponseWriter, r *http.Request) error {
	optional := optionalEvents(r)
	var answer apitypes.WebhookSecretResponse
	body := apitypes.PutWebhookRequest{URL: r.PostFormValue("url"), OptionalEvents: &optional}
	if r.PostForm.Has("headers") {
		headers := headersOf(r.PostFormValue("headers"))
		body.Headers = &headers
	}
	return d.sendWebhook(w, r, http.MethodPut, "", body, &answer, func() error {
		if answer.Secret == "" {
			return d.toWebhook(w, r)()
		}
		return d.showWebhook(w, r, http.StatusOK, webhookView{Secret: answer.Secret})
	})
}

// headerLines returns the text of a form with headers, one on each line, without their values.
func headerLines(names []string) string {
	return strings.Join(db.Each(names, func(name string) string { return name + ":\n" }), "")
}

// headersOf reads headers from lines of a form. A header without a value keeps the stored one.
func headersOf(lines string) []apitypes.WebhookHeader {
	headers := []apitypes.WebhookHeader{}
	for line := range strings.Lines(lines) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "" && value == "" {
			continue
		}
		headers = append(headers, apitypes.WebhookHeader{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value)})
	}
	return headers
}

// optionalEvents returns the types of events that a form chooses.
func optionalEvents(r *http.Request) []apitypes.EventType {
	return db.Each(r.PostForm["event"], func(typ string) apitypes.EventType { return apitypes.EventType(typ) })
}

// pingWebhook sends a ping, and shows its result.
func (d *Dashboard) pingWebhook(w http.ResponseWriter, r *http.Request) error {
	var answer apitypes.PingResponse
	return d.sendWebhook(w, r, http.MethodPost, "/ping", struct{}{}, &answer, func() error {
		return d.showWebhook(w, r, http.StatusOK, webhookView{Ping: &answer.Ping})
	})
}

// stageSecret makes the secret that will replace the active one, and shows it once.
func (d *Dashboard) stageSecret(w http.ResponseWriter, r *http.Request) error {
	var answer apitypes.WebhookSecretResponse
	return d.sendWebhook(w, r, http.MethodPost, "/secret", struct{}{}, &answer, func() error {
		return d.showWebhook(w, r, http.StatusOK, webhookView{Secret: answer.Secret})
	})
}

// promoteSecret makes the staged secret the active one.
func (d *Dashboard) promoteSecret(w http.ResponseWriter, r *http.Request) error {
	return d.sendWebhook(w, r, http.MethodPost, "/secret/promote", struct{}{}, nil, d.toWebhook(w, r))
}

// dropSecret deletes the staged secret.
func (d *Dashboard) dropSecret(w http.ResponseWriter, r *http.Request) error {
	return d.sendWebhook(w, r, http.MethodDelete, "/secret", struct{}{}, nil, d.toWebhook(w, r))
}
