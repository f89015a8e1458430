package dashboard

import (
	"fmt"
	"html/template"
	"math/big"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// homePage is the first page that a person sees.
type homePage struct {
	Zone      string
	Periods   []period
	Charts    []chart
	Open      apitypes.InvoiceSums
	Expired   apitypes.InvoiceSums
	From      string // day since when the invoices were made that Expired adds up, as 2006-01-02
	First     string // that day for people
	Truncated bool   // of the sums of open or expired invoices
	Chains    []homeChain
	Webhook   *apitypes.Webhook     // nil without an endpoint, or if the person may not see it
	Failed    string                // number of events that failed, with + if there are others, or empty
	Undecided []apitypes.InboxCount // kinds of items in the inbox that there are
	Changes   []change
	Since     int64 // Unix seconds of the last visit, or 0
}

// period is the settled amounts of a day, a week or a month until now, and of the whole previous one.
type period struct {
	Name     string // part of the ids of texts
	Settled  []template.HTML
	Previous []template.HTML
}

// homeChain shows how far a chain is read.
type homeChain struct {
	apitypes.SummaryChain
	Behind int64 // seconds since the newest read block
	IsLate bool
}

// change counts the events of a type since the last visit.
type change struct {
	Type  string
	Count int
	More  bool // there are more than were counted
}

// lateAfter is the age of a chain's newest block above which the page shows that the chain is behind.
const lateAfter = 2 * time.Minute

// mostChanges bounds the newest events that are counted.
const mostChanges = 200

// home shows an overview of a merchant's money. A person who may not see payments is led to the first
// page that they may see.
func (d *Dashboard) home(w http.ResponseWriter, r *http.Request) error {
	v := visitOf(r)
	if !v.Can(access.PaymentsRead) {
		to := v.Link("/dashboard/sessions")
		if all := v.Sections(); len(all) > 0 {
			to = all[0].Address
		}
		return lead(w, r, to)
	}
	now := d.cfg.Now()
	from := dayOf(newCalendar(now.UTC().AddDate(0, 0, -1)).from()) // the merchant's day may be the day before
	s := get[apitypes.SummaryResponse](d, r, "/api/reports/summary", v.query("from", from)).Summary
	if v.err != nil {
		return v.err
	}
	zone, ok := invoice.ParseTimezone(s.Timezone)
	if !ok {
		return fmt.Errorf("unknown time zone %q", s.Timezone)
	}
	days := newCalendar(now.In(zone))
	body := homePage{
		Zone: s.Timezone, Periods: days.periods(v, s.Days), Charts: v.newCharts(s.Days, days.chartDays()),
		Open: s.Open, Expired: s.Expired, From: from, First: v.text.Day(from), Truncated: s.Open.Truncated || s.Expired.Truncated,
	}
	for _, c := range s.Chains {
		behind := max(0, now.Unix()-c.BlockTime)
		body.Chains = append(body.Chains, homeChain{c, behind, c.Halted || time.Duration(behind)*time.Second > lateAfter})
	}
	counts, err := d.inboxCounts(r.Context(), v)
	if err != nil {
		return err
	}
	body.Undecided = slices.DeleteFunc(slices.Clone(counts), func(c apitypes.InboxCount) bool { return c.Count == 0 })
	if v.Can(access.EventsRead) {
		if v.merchant != "" {
			if answer, ok := find[apitypes.WebhookResponse](d, r, webhookPath(r)); ok {
				body.Webhook = &answer.Webhook
			}
		}
		body.Failed = d.failedEvents(r, v.query())
	}
	if err := d.addChanges(r, &body); err != nil {
		return err
	}
	return d.render(w, r, http.StatusOK, "home.html", "nav.home", body)
}

// addChanges counts the events since the last visit.
func (d *Dashboard) addChanges(r *http.Request, body *homePage) error {
	v, visited := visitOf(r), d.cfg.Sessions.Visit
	if r.Header.Get(headerRefresh) != "" { // the page, and not the person, asks
		visited = d.cfg.Sessions.Visited
	}
	before, err := visited(r.Context(), v.session)
	if err != nil {
		d.cfg.Logger.WarnContext(r.Context(), "record a visit", "err", err) // a database that takes no writes still has the page
	}
	if before.IsZero() || !v.Can(access.EventsRead) {
		return r.Context().Err()
	}
	body.Since = before.Unix()
	counted := 0
	for _, record := range get[apitypes.EventList](d, r, "/api/events", v.query("limit", strconv.Itoa(mostChanges))).Events {
		e := eventRowOf(record)
		if e.Created < body.Since {
			break
		}
		counted++
		i := slices.IndexFunc(body.Changes, func(c change) bool { return c.Type == e.Type })
		if i < 0 {
			i = len(body.Changes)
			body.Changes = append(body.Changes, change{Type: e.Type})
		}
		body.Changes[i].Count++
	}
	for i := range body.Changes {
		body.Changes[i].More = counted == mostChanges
	}
	return nil
}

// calendar is the days around now in the merchant's time zone. They are dates, written as
// times in UTC, because a day may begin at another hour than midnight.
type calendar struct {
	today, week, month     time.Time // their first days
	yesterday, lastWeek    time.Time
	lastMonth, chartBegins time.Time
}

// chartLength is how many days the charts have.
const chartLength = 30

func newCalendar(now time.Time) calendar {
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	sinceMonday := (int(today.Weekday()) + 6) % 7
	week := today.AddDate(0, 0, -sinceMonday)
	month := today.AddDate(0, 0, 1-today.Day())
	return calendar{
		today: today, week: week, month: month, yesterday: today.AddDate(0, 0, -1), lastWeek: week.AddDate(0, 0, -7), lastMonth: month.AddDate(0, -1, 0),
		chartBegins: today.AddDate(0, 0, 1-chartLength),
	}
}

// from returns the first day that the page needs.
func (c calendar) from() time.Time {
	return slices.MinFunc([]time.Time{c.lastMonth, c.lastWeek, c.chartBegins}, time.Time.Compare)
}

// dayOf returns the day of a time in its zone, such as 2026-11-23.
func dayOf(at time.Time) string { return clock.Format(at, at.Location(), time.DateOnly) }

// chartDays are the days of the charts.
func (c calendar) chartDays() []string {
	days := make([]string, chartLength)
	for i := range days {
		days[i] = dayOf(c.chartBegins.AddDate(0, 0, i))
	}
	return days
}

// periods adds up the day, the week and the month until now, and the previous ones.
func (c calendar) periods(v *visit, lines []apitypes.SummaryLine) []period {
	end := c.today.AddDate(0, 0, 1)
	return []period{
		{"today", v.settled(lines, c.today, end), v.settled(lines, c.yesterday, c.today)},
		{"week", v.settled(lines, c.week, end), v.settled(lines, c.lastWeek, c.week)},
		{"month", v.settled(lines, c.month, end), v.settled(lines, c.lastMonth, c.month)},
	}
}

// settled returns the net sums of the days from a day on and before another day, by currency.
func (v *visit) settled(lines []apitypes.SummaryLine, from, to time.Time) []template.HTML {
	end := dayOf(to)
	before := slices.DeleteFunc(slices.Clone(lines), func(l apitypes.SummaryLine) bool { return l.Day >= end })
	return db.Each(v.units(before, dayOf(from)), func(u *chartUnit) template.HTML {
		sum := new(big.Int)
		for _, l := range u.lines {
			sum.Add(sum, integer(l.Net))
		}
		return u.sum(sum)
	})
}
