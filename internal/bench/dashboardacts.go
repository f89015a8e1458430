package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html"
)

// boardForm is a form of a page, with what the page filled in.
type boardForm struct {
	action string
	values url.Values
}

// forms returns the forms of a page that change something at a path.
func forms(page, path string) (all []boardForm, err error) {
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return nil, err
	}
	for n := range root.Descendants() {
		if n.Data != "form" || attribute(n, "method") != "post" || !strings.HasPrefix(attribute(n, "action"), path) {
			continue
		}
		all = append(all, boardForm{attribute(n, "action"), filledIn(n)})
	}
	return all, nil
}

// filledIn returns the values of a form, with the first option of each selection.
func filledIn(form *html.Node) url.Values {
	values := make(url.Values)
	for field := range form.Descendants() {
		switch {
		case field.Data == "input" && attribute(field, "name") != "":
			values.Set(attribute(field, "name"), attribute(field, "value"))
		case field.Data == "select" && field.LastChild != nil:
			for option := range field.Descendants() {
				if option.Data == "option" && !values.Has(attribute(field, "name")) {
					values.Set(attribute(field, "name"), attribute(option, "value"))
				}
			}
		}
	}
	return values
}

// attribute returns an attribute of an element, or "".
func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// measureActs measures the answers to acts, with the pages that they lead to.
func (b *bench) measureActs(ctx context.Context, kind string, v *visitor) error {
	for _, act := range []struct {
		name, page, action string
		fill               func(url.Values) bool // completes a form; false if it can't be sent
	}{
		{"create an invoice", "/dashboard/invoices/new", "/dashboard/invoices/new", func(values url.Values) bool {
			values.Set("amount", "4.90")
			return true
		}},
		{"dismiss an item of the inbox", "/dashboard/inbox", "/dashboard/inbox/decide", func(values url.Values) bool {
			values.Set("decision", "dismissed")
			values.Set("reason", "measured")
			return true
		}},
		{"attribute a payment", "/dashboard/inbox?kind=unattributed", "/dashboard/payments/", func(values url.Values) bool {
			return values.Get("invoiceId") != "" // that is suggested
		}},
	} {
		took, err := v.repeat(ctx, b.boardTurns, act.page, act.action, act.fill)
		if err != nil {
			return fmt.Errorf("%s: %w", act.name, err)
		}
		p95 := quantile(took, 0.95)
		b.report.row(kind, act.name+", p95", p95, boardActAim, fmt.Sprintf("%.2f", float64(p95)/float64(boardActAim)),
			fmt.Sprintf("aim; with the page that follows; median %v", quantile(took, 0.5)))
	}
	return nil
}

// repeat sends the first form of a page that can be sent, as often as it is measured.
func (v *visitor) repeat(ctx context.Context, times int, page, action string, fill func(url.Values) bool) (took []time.Duration, err error) {
	for range times {
		shown, err := v.get(ctx, page)
		if err != nil {
			return nil, err
		}
		found, err := forms(shown.body, action)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(found, func(f boardForm) bool { return fill(f.values) })
		if i < 0 {
			return nil, fmt.Errorf("%s has no such form: %s", page, shown.body)
		}
		answer, err := v.post(ctx, found[i].action, found[i].values)
		if err != nil {
			return nil, err
		}
		took = append(took, answer.took)
	}
	return took, nil
}
