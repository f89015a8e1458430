package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/webhooks"
	"github.com/quittance/quittance/webhook"
)

// eventFilters are the parameters of the list of events that the REST interface takes.
var eventFilters = []string{"type", "delivery", "invoiceId"}

// eventRow is an event with values from its content.
type eventRow struct {
	apitypes.EventRecord
	ID      string `json:"id"`
	Type    string `json:"type"`
	Created int64  `json:"createdAt"`
}

// eventRowOf reads an event's content. The service wrote it, so it decodes.
func eventRowOf(e apitypes.EventRecord) (row eventRow) {
	_ = json.Unmarshal(e.Event, &row)
	row.EventRecord = e
	return row
}

// State returns the state of the delivery. It is for templates.
func (e eventRow) State() string {
	if e.Delivery == nil {
		return string(webhooks.None)
	}
	return string(e.Delivery.Status)
}

// Bounds of the pause before an open page with a pending delivery is read again.
const (
	soonestAgain = 3 * time.Second
	overdueAgain = time.Minute // the longest pause while an attempt is overdue
	rarestAgain  = time.Hour
)

// readAgain returns the seconds after which an open page should read events again, or 0. The feed,
// which wakes pages for all other changes, does not report attempts.
func readAgain(now time.Time, rows ...eventRow) int64 {
	soonest := time.Duration(0)
	for _, e := range rows {
		if e.State() != string(webhooks.Pending) {
			continue
		}
		pause := soonestAgain // the attempt is in progress
		if at := e.Delivery.NextAttemptAt; at != 0 {
			due := time.Unix(at, 0).Sub(now)
			pause = min(max(due, min(-due, overdueAgain), soonestAgain), rarestAgain)
		}
		if soonest == 0 || pause < soonest {
			soonest = pause
		}
	}
	return int64(soonest.Round(time.Second).Seconds())
}

// eventList is the list of events.
type eventList struct {
	Filter url.Values
	Rows   []eventRow
	Next   string
	May    bool // the person may redeliver events
	Again  int64
}

// Types returns the types of events. It is for templates.
func (eventList) Types() []invoice.EventType { return invoice.EventTypes }

// States returns the states of deliveries. It is for templates.
func (eventList) States() []webhooks.Status {
	return []webhooks.Status{webhooks.Pending, webhooks.Delivered, webhooks.Failed, webhooks.None}
}

// events lists events, newest first.
func (d *Dashboard) events(w http.ResponseWriter, r *http.Request) error {
	v := visitOf(r)
	query := v.query()
	filter := filtered(r, query, eventFilters)
	list := get[apitypes.EventList](d, r, "/api/events", query)
	body := eventList{Filter: filter, Rows: db.Each(list.Events, eventRowOf), Next: nextPage(v, filter, list.NextCursor), May: v.Can(access.EventsRedeliver)}
	body.Again = readAgain(d.cfg.Now(), body.Rows...)
	return d.render(w, r, http.StatusOK, "events.html", "nav.events", body)
}

// eventView is the page of an event.
type eventView struct {
	eventRow
	Error string
	Text  string // the content, indented
	Curl  string // a command that sends the content
	May   bool   // the person may redeliver it
	Again int64
}

// showEvent shows an event with its attempts.
func (d *Dashboard) showEvent(w http.ResponseWriter, r *http.Request, status int, refused string) error {
	record := get[apitypes.EventRecord](d, r, id("/api/events", r.PathValue("id")), nil)
	if err := visitOf(r).err; err != nil {
		return err
	}
	row := eventRowOf(record)
	var text bytes.Buffer
	if err := json.Indent(&text, record.Event, "", "  "); err != nil {
		return fmt.Errorf("indent an event: %w", err)
	}
	view := eventView{eventRow: row, Error: refused, Text: text.String(), May: visitOf(r).Can(access.EventsRedeliver) && row.State() != string(webhooks.Pending)}
	view.Again, view.Curl = readAgain(d.cfg.Now(), row), d.curl(r, row)
	return d.render(w, r, status, "event.html", "timeline.event", view)
}

// curl returns a command that sends an event's content as the service does. It lacks only the
// signature, which takes the secret.
func (d *Dashboard) curl(r *http.Request, e eventRow) string {
	to := "http://127.0.0.1:4000/webhooks"
	if answer, ok := find[apitypes.WebhookResponse](d, r, id("/api/merchants", e.MerchantID)+"/webhook"); ok {
		to = answer.Webhook.URL
	}
	var b strings.Builder
	fmt.Fprintf(&b, "curl %s \\\n  -H 'Content-Type: application/json' \\\n  -H %s \\\n", quoted(to), quoted(webhook.HeaderEvent+": "+e.Type))
	if e.Delivery != nil {
		fmt.Fprintf(&b, "  -H %s \\\n", quoted(webhook.HeaderDelivery+": "+e.Delivery.ID))
	}
	fmt.Fprintf(&b, "  --data-raw %s", quoted(string(e.Event)))
	return b.String()
}

// quoted returns a text as one word of a POSIX shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// redeliverEvent redelivers an event.
func (d *Dashboard) redeliverEvent(w http.ResponseWriter, r *http.Request) error {
	path := id("/api/events", r.PathValue("id"))
	err := d.service.send(r.Context(), http.MethodPost, path+"/redeliver", struct{}{}, nil)
	return d.outcome(w, r, err, d.showEvent, id("/dashboard/events", r.PathValue("id")))
}

// redeliverForm is the page before and after all failed events are redelivered.
type redeliverForm struct {
	Failed string // as failedEvents counts them
	More   bool   // there are more than were sent
	Done   bool
	Sent   int64
}

// failedEvents returns how many events that a query of the interface selects have failed, with + if there are others
// than it reads, or "".
func (d *Dashboard) failedEvents(r *http.Request, query url.Values) (count string) {
	query.Set("delivery", string(apitypes.WithFailed))
	list := get[apitypes.EventList](d, r, "/api/events", query)
	if n := len(list.Events); n > 0 {
		count = strconv.Itoa(n)
	}
	if list.NextCursor != "" {
		count += "+"
	}
	return count
}

// redeliverPage shows how many events have failed.
func (d *Dashboard) redeliverPage(w http.ResponseWriter, r *http.Request) error {
	return d.render(w, r, http.StatusOK, "redeliver.html", "redeliver.title", redeliverForm{Failed: d.failedEvents(r, limited(visitOf(r).query()))})
}

// redeliverFailed redelivers all failed events.
func (d *Dashboard) redeliverFailed(w http.ResponseWriter, r *http.Request) error {
	form := redeliverForm{Done: true}
	request := apitypes.RedeliverEventsRequest{MerchantID: visitOf(r).merchant, FailedOnly: true}
	var answer apitypes.RedeliverEventsResponse
	if err := d.service.send(r.Context(), http.MethodPost, "/api/events/redeliver", request, &answer); err != nil {
		return err
	}
	form.Sent, form.More = answer.Redelivered, answer.NextCursor != ""
	return d.render(w, r, http.StatusOK, "redeliver.html", "redeliver.title", form)
}
