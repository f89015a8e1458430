package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/seed"
)

const (
	// listedFew is the number of invoices of the ceiling.
	listedFew = 10_000
	// listedMerchants is the number of their merchants. More invoices are of more merchants,
	// listedOf each in the mean.
	listedMerchants, listedOf = 100, 1000
	// listedOpen: one of so many invoices is open.
	listedOpen = 50
	// listQueries is how often each filter is requested of each database.
	listQueries = 300
	// listWarmUp is how often it is requested before.
	listWarmUp = 10
	// deepPages is how deep a list is read, and deepKept how many of its last pages are measured.
	deepPages, deepKept = 500, 20
	// listAim is how much longer the p99 of many invoices may be than that of few.
	listAim = 2
)

// measureLists measures lists, searches and single objects over HTTP, with few and with many
// invoices in turns. Each request has its own value of the filter. Its rounds share the databases,
// which take much longer to fill than a round takes.
func (b *bench) measureLists(ctx context.Context, kind string) (err error) {
	began := time.Now()
	few, many, err := b.startFewAndMany(ctx, kind)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, few.stop(), many.stop()) }()
	seeded := time.Since(began)
	c := listComparison{client: &http.Client{Transport: &http.Transport{}}, few: few, many: many}
	defer c.client.CloseIdleConnections()
	for range b.rounds {
		if err := b.compareAllLists(ctx, kind, c); err != nil {
			return err
		}
	}
	b.report.merge(b.rounds)
	b.report.row(kind, fmt.Sprintf("rows made for lists of %d and %d invoices", listedFew, b.listed), seeded.Round(time.Second), "", "", "")
	return nil
}

// compareAllLists reports all requests, and how many of them reach the aim.
func (b *bench) compareAllLists(ctx context.Context, kind string, c listComparison) error {
	all, reached := 0, 0
	for _, f := range listFilters {
		ratios, err := b.compareLists(ctx, kind, c, f)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		all += len(ratios)
		for _, r := range ratios {
			if r <= listAim {
				reached++
			}
		}
	}
	b.report.row(kind, fmt.Sprintf("requests whose p99 of %d invoices is at most %d times that of %d", b.listed, listAim, listedFew), fmt.Sprintf("%d of %d", reached, all), "", "", "")
	return nil
}

// compareLists reports a request with few and with many invoices, and its list's pages far from the
// first. It returns the ratios of their p99.
func (b *bench) compareLists(ctx context.Context, kind string, c listComparison, f listFilter) ([]float64, error) {
	was, is, err := c.measure(ctx, f.path)
	if err != nil {
		return nil, err
	}
	ratios := []float64{b.reportList(kind, f.name, was, is)}
	if f.deep == 0 {
		return ratios, nil
	}
	pages := make(map[*world][]string)
	for _, l := range []listed{c.few, c.many} {
		if pages[l.world], err = l.deep(ctx, c.client, f); err != nil {
			return nil, err
		}
	}
	was, is, err = c.measure(ctx, func(l listed, n int) string { return pages[l.world][n%deepKept] })
	if err != nil {
		return nil, err
	}
	return append(ratios, b.reportList(kind, fmt.Sprintf("%s, %d pages of %d deep", f.name, deepPages, f.deep), was, is)), nil
}

func (b *bench) reportList(kind, name string, was, is listTimes) (ratio float64) {
	figure, ceiling := quantile(is.took, 0.99), quantile(was.took, 0.99)
	ratio = float64(figure) / float64(ceiling)
	b.report.row(kind, fmt.Sprintf("GET %s, p99 of %d invoices", name, b.listed), figure, ceiling, fmt.Sprintf("%.2f", ratio),
		fmt.Sprintf("ceiling: of %d; medians %v and %v; %.1f and %.1f elements", listedFew, quantile(is.took, 0.5), quantile(was.took, 0.5), is.perPage(), was.perPage()))
	return ratio
}

// listed is a server with invoices, payments and events to list.
type listed struct {
	*world
	*seed.Maker
	events, refunds []string // ids of the newest
}

// startFewAndMany starts a server with listedFew invoices, and one with as many as lists are measured with.
func (b *bench) startFewAndMany(ctx context.Context, kind string) (few, many listed, err error) {
	if few, err = b.startListed(ctx, kind, listedFew); err != nil {
		return few, many, err
	}
	if many, err = b.startListed(ctx, kind, b.listed); err != nil {
		err = errors.Join(err, few.stop())
	}
	return few, many, err
}

// startListed starts a server on a database with invoices of a year.
func (b *bench) startListed(ctx context.Context, kind string, n int) (_ listed, err error) {
	database, err := b.url(ctx, kind, fmt.Sprintf("lists_%d", n))
	if err != nil {
		return listed{}, err
	}
	rows, err := seed.New(seed.Config{
		Invoices: n, Merchants: max(listedMerchants, n/listedOf), Open: n / listedOpen, Until: time.Now(), KeepEvents: config.DefaultRetention, KeepAttempts: config.DefaultRetention,
	})
	if err != nil {
		return listed{}, err
	}
	w, err := startSeeded(ctx, database, rows, serverConfig{})
	if err != nil {
		return listed{}, fmt.Errorf("make rows: %w", err)
	}
	l := listed{world: w, Maker: rows}
	if err = errors.Join(w.waitReady(ctx), waitForSums(ctx, database)); err == nil {
		l.events, l.refunds, err = l.newest(ctx)
	}
	if err != nil {
		return listed{}, errors.Join(err, w.stop())
	}
	return l, nil
}

// newest returns the ids of the newest events and refunds.
func (l listed) newest(ctx context.Context) (events, refunds []string, err error) {
	page, err := getPage(ctx, http.DefaultClient, l.server.url+"/api/events?limit=200")
	for _, e := range page.Events {
		var listed struct{ Event struct{ ID string } }
		err = errors.Join(err, json.Unmarshal(e, &listed))
		events = append(events, listed.Event.ID)
	}
	if err != nil {
		return nil, nil, err
	}
	page, err = getPage(ctx, http.DefaultClient, l.server.url+"/api/refunds?limit=200")
	for _, r := range page.Refunds {
		var listed struct{ ID string }
		err = errors.Join(err, json.Unmarshal(r, &listed))
		refunds = append(refunds, listed.ID)
	}
	if err == nil && (len(events) == 0 || len(refunds) == 0) {
		err = errors.New("the list of events or of refunds is empty")
	}
	return events, refunds, err
}

// payment returns a payment of the nth invoice, or of one of those that follow.
func (l listed) payment(n int) invoice.Payment {
	for ; ; n = (n + 1) % l.Invoices {
		if of := l.Payments(n); len(of) > 0 {
			return of[0].Payment
		}
	}
}

// merchant returns the id of the nth invoice's merchant.
func (l listed) merchant(n int) string { return seed.Merchant(l.Owner(n)) }

// deep returns the addresses of the last of deepPages pages.
func (l listed) deep(ctx context.Context, client *http.Client, f listFilter) (paths []string, err error) {
	first := f.path(l, l.Invoices-1)
	u, err := url.Parse(first)
	if err != nil {
		return nil, err
	}
	query := u.Query()
	query.Set("limit", fmt.Sprint(f.deep))
	for n := range deepPages {
		path := u.Path + "?" + query.Encode()
		if n >= deepPages-deepKept {
			paths = append(paths, path)
		}
		page, err := getPage(ctx, client, l.server.url+"/api/"+path)
		if err != nil {
			return nil, err
		}
		if page.NextCursor == "" && n < deepPages-1 {
			return nil, fmt.Errorf("the list ends at page %d", n+1)
		}
		query.Set("cursor", page.NextCursor)
	}
	return paths, nil
}

// listFilter is a request. Its path is that which finds the nth row by the filter.
type listFilter struct {
	name string
	path func(l listed, n int) string
	deep int // how many elements its pages far from the first have; 0 if these are not measured
}

// listTimes are the durations of requests, and how many elements all of them returned.
type listTimes struct {
	took     []time.Duration
	elements int
}

func (t listTimes) perPage() float64 { return float64(t.elements) / float64(len(t.took)) }

// listComparison compares requests of two servers.
type listComparison struct {
	client    *http.Client
	few, many listed
}

// measure requests paths with few and with many rows in turns.
func (c listComparison) measure(ctx context.Context, path func(l listed, n int) string) (was, is listTimes, err error) {
	for i := range listWarmUp + listQueries {
		for _, side := range []struct {
			listed
			into *listTimes
		}{{c.few, &was}, {c.many, &is}} {
			address := side.server.url + "/api/" + path(side.listed, rand.N(side.Invoices)) //nolint:gosec // it picks a row
			page, err := getPage(ctx, c.client, address)
			if err != nil {
				return was, is, err
			}
			if i >= listWarmUp {
				side.into.took = append(side.into.took, page.took)
				side.into.elements += page.elements()
			}
		}
	}
	return was, is, nil
}

// listPage is a page of a list.
type listPage struct {
	Invoices, Payments, Refunds, Claims, Events, Entries, Customers, Links, Items, Decisions, Merchants, Keys, Requests []json.RawMessage
	NextCursor                                                                                                          string

	took time.Duration // until the response was read
}

func (p listPage) elements() (n int) {
	for _, of := range [][]json.RawMessage{
		p.Invoices, p.Payments, p.Refunds, p.Claims, p.Events, p.Entries, p.Customers, p.Links, p.Items, p.Decisions, p.Merchants, p.Keys, p.Requests,
	} {
		n += len(of)
	}
	return n
}

// getPage requests a page of a list, or an object.
func getPage(ctx context.Context, client *http.Client, address string) (page listPage, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return page, err
	}
	req.Header.Set("Authorization", "Bearer "+operatorKey().Reveal())
	began := time.Now()
	res, err := client.Do(req)
	if err != nil {
		return page, err
	}
	defer res.Body.Close() //nolint:errcheck // it was read to its end
	text, err := io.ReadAll(res.Body)
	page.took = time.Since(began)
	if err != nil {
		return page, err
	}
	if res.StatusCode != http.StatusOK {
		return page, fmt.Errorf("GET %s: status %d: %s", address, res.StatusCode, text)
	}
	return page, json.Unmarshal(text, &page)
}
