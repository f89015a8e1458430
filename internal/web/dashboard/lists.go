package dashboard

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/web/webpage"
)

const (
	// pageSize is how many rows a list shows.
	pageSize = 50
	// printPage is how many rows of a printed list are read at once.
	printPage = 200
	// maxPrinted bounds the rows of a printed list.
	maxPrinted = 500
)

// lister is a list of the interface that is shown as a page with filters: A is the answer of
// the interface, and R a row of the page.
type lister[A, R any] struct {
	page            string // path of the page
	api             string // path of the list in the interface
	template, title string
	filters         []filter
	// rows returns the rows of an answer, and the cursor of the next page, or "".
	rows func(answer A) (rows []R, cursor string)
	// jump returns the page that the filter q leads to instead of the list, or "". It is nil if there is no such page.
	jump func(v *visit, text string) string
	// oneMerchant is set if the interface lists only objects of one merchant.
	oneMerchant bool
	csv         bool // the interface has the list as CSV
}

// filter is a parameter of a list's page.
type filter struct {
	name string
	text string // id of the label; empty for a hidden filter
	rare bool   // it is shown only if a link sets it
	kind string // type of the <input>, or "select"
	// options are the values of a select, after the empty one for all.
	options func(v *visit) []option
	// day, if set, is the interface's parameter for the time at which the day of the filter begins, or
	// ends if end is set, in the page's time zone.
	day string
	end bool
	// apply adds the filter to the query of the interface. The value may be empty. If apply is
	// nil, the interface has a parameter of the filter's name.
	apply func(v *visit, query url.Values, value string)
}

// option is a value of a select. Its text is Text, or if Kind is set, what the template function text
// returns for the kind and the value.
type option struct{ Value, Kind, Text string }

// field is a filter on a page.
type field struct {
	Name, Label, Type, Value string
	Options                  []option
}

// listPage is the page of a list.
type listPage[R any] struct {
	listFrame
	Rows []R
}

// listFrame is the part of a list around its rows.
type listFrame struct {
	Page    string // path
	Filter  url.Values
	Fields  []field
	Next    string // address of the next page, or empty
	Export  string // address of the CSV of the filtered list, or empty
	Print   string // address of the list for printing
	Screen  string // of a printed list: address of the page
	Printed bool
	Cut     bool   // a printed list has more than maxPrinted rows
	Error   string // refusal of the filters by the interface, or empty
	Size    int    // rows of the page
	keptFilters
}

// show returns a handler that shows the list.
func (l lister[A, R]) show(d *Dashboard) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		v := visitOf(r)
		if l.oneMerchant && v.merchant == "" {
			return d.chooseMerchant(w, r, l.title)
		}
		query, frame := l.query(v, r)
		if text := frame.Filter.Get("q"); l.jump != nil && text != "" {
			if to := l.jump(v, text); to != "" {
				return lead(w, r, to)
			}
		}
		body := listPage[R]{listFrame: frame}
		var err error
		body.Error, err = detail(l.read(d, r, query, &body))
		if err != nil {
			return err
		}
		body.Size = len(body.Rows)
		if err := d.addKept(r, &body.listFrame); err != nil {
			return err
		}
		return d.render(w, r, status(body.Error), l.template, l.title, body)
	}
}

// read reads the rows of a page, or of all pages up to maxPrinted rows for a printed list.
func (l lister[A, R]) read(d *Dashboard, r *http.Request, query url.Values, body *listPage[R]) error {
	for {
		var answer A
		if err := d.service.get(r.Context(), l.api, query, &answer); err != nil {
			return err
		}
		rows, cursor := l.rows(answer)
		body.Rows = append(body.Rows, rows...)
		switch {
		case cursor == "", !body.Printed:
			body.Next = pageAt(visitOf(r), l.page, body.Filter, cursor)
			return nil
		case len(body.Rows) >= maxPrinted:
			body.Rows, body.Cut = body.Rows[:maxPrinted], true
			return nil
		}
		query.Set("cursor", cursor)
	}
}

// export returns a handler that answers with the CSV of the filtered list.
func (l lister[A, R]) export(d *Dashboard) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		query, _ := l.query(visitOf(r), r)
		query.Del("limit")
		query.Del("cursor")
		query.Set("timezone", visitOf(r).Zone().String())
		return d.passCSV(w, r, l.api, query)
	}
}

// passCSV answers with a list or a report of the interface as CSV, in the form that spreadsheets
// in the person's language open correctly: they divide cells at semicolons if numbers have a comma.
func (d *Dashboard) passCSV(w http.ResponseWriter, r *http.Request, path string, query url.Values) error {
	query.Set("bom", "1")
	if visitOf(r).text.DecimalComma() {
		query.Set("separator", "semicolon")
		query.Set("decimal", "comma")
	}
	return d.service.pass(w, r, path, query, http.Header{"Accept": {"text/csv"}})
}

// ask adds the filter with a value, which may be empty, to the query of the interface.
func (f filter) ask(v *visit, query url.Values, value string) {
	switch {
	case f.apply != nil:
		f.apply(v, query, value)
	case value == "":
	case f.day != "":
		query.Set(f.day, dayText(value, f.end, v.Zone()))
	default:
		query.Set(f.name, value)
	}
}

// query returns the query of the interface for the filters of a request, and the frame.
func (l lister[A, R]) query(v *visit, r *http.Request) (url.Values, listFrame) {
	query, asked := v.query(), r.URL.Query()
	frame := listFrame{Page: l.page, Filter: make(url.Values), Printed: asked.Get("print") != ""}
	for _, f := range l.filters {
		value := strings.TrimSpace(asked.Get(f.name))
		if value != "" {
			frame.Filter.Set(f.name, value)
		}
		f.ask(v, query, value)
		shown := field{Name: f.name, Label: f.text, Type: f.kind, Value: value}
		if f.options != nil {
			shown.Options = f.options(v)
		}
		if f.text != "" && (value != "" || !f.rare) && (f.kind != "select" || len(shown.Options) > 0) {
			frame.Fields = append(frame.Fields, shown)
		}
	}
	query.Set("limit", strconv.Itoa(pageSize))
	if frame.Printed {
		query.Set("limit", strconv.Itoa(printPage))
	} else if cursor := asked.Get("cursor"); cursor != "" {
		query.Set("cursor", cursor)
	}
	if l.csv {
		frame.Export = filteredPage(v, l.page+".csv", frame.Filter)
	}
	frame.Print = filteredPage(v, l.page, frame.Filter, "print", "1")
	frame.Screen = filteredPage(v, l.page, frame.Filter)
	return query, frame
}

// Chosen returns the filters that are set, as they are printed. It is for templates.
func (f listFrame) Chosen() []field {
	return slices.DeleteFunc(slices.Clone(f.Fields), func(shown field) bool { return shown.Value == "" })
}

// Option returns the chosen option of a select, or an option with the value as text. It is for templates.
func (f field) Option() option {
	if i := slices.IndexFunc(f.Options, func(o option) bool { return o.Value == f.Value }); i >= 0 {
		return f.Options[i]
	}
	return option{Text: f.Value}
}

// optionsOf returns options with the texts of a kind.
func optionsOf[T ~string](kind string, values []T) func(*visit) []option {
	return func(*visit) []option {
		return db.Each(values, func(value T) option { return option{Value: string(value), Kind: kind} })
	}
}

// severalNetworks returns the networks of the service, if there are several.
func severalNetworks(v *visit) []option {
	if len(v.chains) < 2 {
		return nil
	}
	return v.networks()
}

// networks returns the networks of the service in the order of their names.
func (v *visit) networks() []option {
	all := db.Each(slices.Collect(maps.Keys(v.chains)), func(key string) option { return option{Value: key, Text: v.Network(key)} })
	slices.SortFunc(all, func(a, b option) int {
		return cmp.Or(strings.Compare(a.Text, b.Text), strings.Compare(a.Value, b.Value))
	})
	return all
}

// dayFilter returns a filter by the first day, or by the last one if end is set.
func dayFilter(name, text, param string, end bool) filter {
	return filter{name: name, text: text, kind: "date", day: param, end: end}
}

// dayText returns the Unix time at which a day such as 2026-11-23 begins in a time zone, or the day after it if next is
// set. A text that is not a day is returned as it is, so that the interface refuses it.
func dayText(day string, end bool, zone *time.Location) string {
	date, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return day
	}
	if end {
		date = date.AddDate(0, 0, 1)
	}
	return strconv.FormatInt(invoice.DayStart(clock.Format(date, time.UTC, time.DateOnly), zone).Unix(), 10)
}

// applyAmount adds a filter by an amount that a person typed.
func applyAmount(v *visit, query url.Values, text string) {
	if text != "" {
		query.Set("amount", v.minorUnits(text))
	}
}

// minorUnits returns an amount that a person typed in units of a token, such as 12.50, in minor units.
// A text that is not an amount is returned as it is, so that the interface refuses it.
func (v *visit) minorUnits(text string) string {
	amount, err := webpage.ParseAmount(text, v.text.Lang(), chain.TokenDecimals)
	if err != nil {
		return text
	}
	return amount.String()
}

// objectPage returns the page of the payment or refund with an id, or "" for any other text.
func objectPage(text string) string {
	const length = 26 // of an id without its prefix
	for prefix, page := range map[string]string{invoice.PrefixPayment: "/dashboard/payments", invoice.PrefixRefund: "/dashboard/refunds"} {
		if rest, ok := strings.CutPrefix(text, prefix); ok && len(rest) == length {
			return id(page, text)
		}
	}
	return ""
}

// toObject is a lister's jump to the payment or refund with an id.
func toObject(v *visit, text string) string {
	if page := objectPage(text); page != "" {
		return v.Link(page)
	}
	return ""
}

// status returns the status of a page: 400 if it shows an error of the interface, else 200.
func status(detail string) int {
	if detail != "" {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// filtered adds the filters and the cursor of a request for a list to the query of the REST
// interface, and returns the filters.
func filtered(r *http.Request, query url.Values, names []string) url.Values {
	filter := make(url.Values)
	for _, name := range names {
		if value := r.URL.Query().Get(name); value != "" {
			filter.Set(name, value)
			query.Set(name, value)
		}
	}
	if cursor := r.URL.Query().Get("cursor"); cursor != "" {
		query.Set("cursor", cursor)
	}
	query.Set("limit", strconv.Itoa(pageSize))
	return filter
}

// nextPage returns the address of the page of a list after a cursor, or "".
func nextPage(v *visit, filter url.Values, cursor string) string {
	return pageAt(v, v.here, filter, cursor)
}

// pageAt returns the address of a page of the list with a path after a cursor, or "" without one.
func pageAt(v *visit, path string, filter url.Values, cursor string) string {
	if cursor == "" {
		return ""
	}
	return filteredPage(v, path, filter, "cursor", cursor)
}

// filteredPage returns the address of a page with filters and other pairs.
func filteredPage(v *visit, path string, filter url.Values, pairs ...string) string {
	for name := range filter {
		pairs = append(pairs, name, filter.Get(name))
	}
	return v.Link(path, pairs...)
}
