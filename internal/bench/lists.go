package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

const (
	// listedFew is the number of invoices of the ceiling.
	listedFew = 10_000
	// listQueries is how often each filter is requested of each database.
	listQueries = 300
	// listWarmUp is how often it is requested before.
	listWarmUp = 10
)

// measureLists measures lists and searches over HTTP, with few and with many invoices in
// turns. Each request has its own value of the filter.
func (b *bench) measureLists(ctx context.Context, kind string) (err error) {
	began := time.Now()
	few, err := b.startListed(ctx, kind, listedFew)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, few.stop()) }()
	many, err := b.startListed(ctx, kind, b.listed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, many.stop()) }()
	seeded := time.Since(began)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for _, f := range listFilters {
		was, is, err := f.measure(ctx, client, few, many)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		figure, ceiling := quantile(is.took, 0.99), quantile(was.took, 0.99)
		b.report.row(kind, fmt.Sprintf("GET %s, p99 of %d invoices", f.name, b.listed), figure, ceiling, fmt.Sprintf("%.2f", float64(figure)/float64(ceiling)),
			fmt.Sprintf("ceiling: of %d; medians %v and %v; %.1f and %.1f elements", listedFew,
				quantile(is.took, 0.5), quantile(was.took, 0.5), is.perPage(), was.perPage()))
	}
	b.report.row(kind, fmt.Sprintf("rows made for lists of %d and %d invoices", listedFew, b.listed), seeded.Round(time.Second), "", "", "")
	return nil
}

// listed is a server with invoices, payments and events to list.
type listed struct {
	*world
	listRows
}

// startListed starts a server and makes its rows.
func (b *bench) startListed(ctx context.Context, kind string, n int) (_ listed, err error) {
	url, err := b.url(ctx, kind, fmt.Sprintf("lists_%d", n))
	if err != nil {
		return listed{}, err
	}
	w, err := b.start(ctx, serverConfig{Database: url})
	if err != nil {
		return listed{}, err
	}
	l := listed{w, listRows{n: n, first: time.Now().Truncate(time.Second).Add(-time.Duration(n) * time.Second)}}
	if err = w.waitReady(ctx); err == nil { // payments refer to the chain's row
		err = appendRows(ctx, url, l.batches())
	}
	if err == nil && kind != "sqlite" {
		err = execute(ctx, url, "VACUUM ANALYZE") // as autovacuum does in time
	}
	if err != nil {
		return listed{}, errors.Join(fmt.Errorf("make rows: %w", err), w.stop())
	}
	return l, nil
}

// listFilter is a request. Its path is that which finds the nth row by the filter.
type listFilter struct {
	name string
	path func(r listRows, n int) string
}

// listTimes are the durations of requests, and how many elements all of them returned.
type listTimes struct {
	took     []time.Duration
	elements int
}

func (t listTimes) perPage() float64 { return float64(t.elements) / float64(len(t.took)) }

// measure requests the list with few and with many rows in turns.
func (f listFilter) measure(ctx context.Context, client *http.Client, few, many listed) (was, is listTimes, err error) {
	for i := range listWarmUp + listQueries {
		for _, side := range []struct {
			listed
			into *listTimes
		}{{few, &was}, {many, &is}} {
			url := side.server.url + "/api/" + f.path(side.listRows, rand.N(side.n)) //nolint:gosec // it picks a row
			took, elements, err := getList(ctx, client, url)
			if err != nil {
				return was, is, err
			}
			if i >= listWarmUp {
				side.into.took = append(side.into.took, took)
				side.into.elements += elements
			}
		}
	}
	return was, is, nil
}

// getList requests a page, and returns how many elements it has.
func getList(ctx context.Context, client *http.Client, url string) (took time.Duration, elements int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, 0, err
	}
	req.Header.Set("Authorization", "Bearer "+operatorKey().Reveal())
	began := time.Now()
	res, err := client.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer res.Body.Close() //nolint:errcheck // it was read to its end
	text, err := io.ReadAll(res.Body)
	took = time.Since(began)
	if err != nil {
		return 0, 0, err
	}
	if res.StatusCode != http.StatusOK {
		return 0, 0, fmt.Errorf("GET %s: status %d: %s", url, res.StatusCode, text)
	}
	var page struct{ Invoices, Payments, Events, Entries []json.RawMessage }
	err = json.Unmarshal(text, &page)
	return took, len(page.Invoices) + len(page.Payments) + len(page.Events) + len(page.Entries), err
}
