package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// pagePolls is how many polls the CPU time of one is measured with.
	pagePolls = 5000
	// pageEvents is how many events the CPU time of one is measured with.
	pageEvents = 1000
	// pageWorkers is how many clients create invoices, open pages and poll at a time.
	pageWorkers = 16
	// pageRest is how long pages wait while their CPU time is measured.
	pageRest = 20 * time.Second
)

// measurePages measures what open checkout pages cost: the CPU time of a poll and of an
// event, the memory of all streams, and the latency of the API meanwhile.
func (b *bench) measurePages(ctx context.Context, kind string) (err error) {
	url, err := b.url(ctx, kind, "pages")
	if err != nil {
		return err
	}
	conf := serverConfig{Database: url}
	if b.profile != "" {
		conf.Profile = filepath.Join(b.profile, "pages-"+kind+".pprof")
	}
	w, err := b.start(ctx, conf)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	if err := w.waitReady(ctx); err != nil {
		return err
	}
	ids, err := w.createPages(ctx, b.pages+pageEvents)
	if err != nil {
		return err
	}
	if err := b.measurePolls(ctx, kind, w, ids); err != nil {
		return err
	}
	getter, err := w.newGetter(ctx)
	if err != nil {
		return err
	}
	defer getter.client.CloseIdleConnections()
	return b.measureOpenPages(ctx, kind, w, ids, getter)
}

// measureOpenPages measures the memory and CPU time of streams, and the getter's latency
// before, meanwhile and afterwards. The first of the ids have a page, the others are made void
// without one.
func (b *bench) measureOpenPages(ctx context.Context, kind string, w *world, ids []string, getter *getter) error {
	alone, err := w.cpuOfVoids(ctx, ids[b.pages:])
	if err != nil {
		return err
	}
	without, err := getter.get(ctx, b.turn)
	if err != nil {
		return err
	}
	before, _, err := w.server.memory()
	if err != nil {
		return err
	}
	pages, err := openPages(ctx, strings.TrimPrefix(w.server.url, "http://"), ids[:b.pages])
	if err != nil {
		return err
	}
	with, err := b.measureWaiting(ctx, kind, w, getter, before)
	if err != nil {
		return errors.Join(err, pages.stop())
	}
	if err := b.measureEvents(ctx, kind, w, ids[:min(pageEvents, b.pages)], alone); err != nil {
		return errors.Join(err, pages.stop())
	}
	if _, err := pages.finish(); err != nil {
		return err
	}
	after, err := getter.get(ctx, b.turn)
	if err != nil {
		return err
	}
	p99, ceiling := quantile(with, 0.99), quantile(append(without, after...), 0.99)
	b.report.row(kind, fmt.Sprintf("GET of an invoice, %d/s, p99 with %d open pages", getRate, b.pages), p99, ceiling, fmt.Sprintf("%.2f", float64(p99)/float64(ceiling)),
		fmt.Sprintf("ceiling: without them, before and afterwards (%v and %v); medians %v and %v", quantile(without, 0.99), quantile(after, 0.99), quantile(with, 0.5), quantile(append(without, after...), 0.5)))
	return nil
}

// measureWaiting measures what pages cost that wait, of which the server had so much memory
// before, and returns how long the getter's requests take meanwhile.
func (b *bench) measureWaiting(ctx context.Context, kind string, w *world, getter *getter, before int64) ([]time.Duration, error) {
	rest, err := w.cpuOver(ctx, pageRest)
	if err != nil {
		return nil, err
	}
	now, peak, err := w.server.memory()
	if err != nil {
		return nil, err
	}
	count := fmt.Sprintf("%d open pages", b.pages)
	b.report.row(kind, "resident memory, "+count, fmt.Sprintf("%d MB", now>>20), "200 MB", fmt.Sprintf("%.2f", float64(now)/(200<<20)),
		fmt.Sprintf("%d MB before, %d MB at most; %.1f kB for a page", before>>20, peak>>20, float64(now-before)/float64(b.pages)/1000))
	b.report.row(kind, "CPU of waiting, "+count, fmt.Sprintf("%.3f CPUs", rest.Seconds()/pageRest.Seconds()), "", "", "heartbeats, and a look at the chain twice a second")
	return getter.get(ctx, 2*b.turn)
}

// measureEvents measures the CPU time of an event of an open page: what it takes to make an
// invoice void, more than without a page, and less the heartbeats of all pages meanwhile.
func (b *bench) measureEvents(ctx context.Context, kind string, w *world, ids []string, alone usage) error {
	rest, err := w.cpuOver(ctx, pageRest)
	if err != nil {
		return err
	}
	voids, err := w.cpuOfVoids(ctx, ids)
	if err != nil {
		return err
	}
	n := time.Duration(len(ids))
	heartbeats := time.Duration(float64(rest) * voids.took.Seconds() / pageRest.Seconds())
	b.report.row(kind, "CPU of an event of a page", (voids.cpu/n - alone.cpu/pageEvents - heartbeats/n).Round(time.Microsecond), "200µs", "",
		fmt.Sprintf("an invoice is made void: %v with its page open, %v without; %v of that are heartbeats; %d events",
			(voids.cpu/n).Round(time.Microsecond), (alone.cpu/pageEvents).Round(time.Microsecond), (heartbeats/n).Round(time.Microsecond), n))
	return nil
}

// measurePolls measures the CPU time of a poll.
func (b *bench) measurePolls(ctx context.Context, kind string, w *world, ids []string) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: pageWorkers}}
	defer client.CloseIdleConnections()
	poll := func(ctx context.Context, id string) error {
		return fetch(ctx, client, w.server.url+"/checkout/"+id+"/status")
	}
	warm := ids[:min(100, len(ids))]
	if err := inParallel(ctx, warm, poll); err != nil {
		return err
	}
	before, err := w.server.cpu()
	if err != nil {
		return err
	}
	polled := make([]string, pagePolls)
	for i := range polled {
		polled[i] = ids[i%len(ids)]
	}
	if err := inParallel(ctx, polled, poll); err != nil {
		return err
	}
	after, err := w.server.cpu()
	if err != nil {
		return err
	}
	b.report.row(kind, "CPU of a poll of a page", ((after - before) / pagePolls).Round(time.Microsecond), "200µs", "", fmt.Sprintf("mean of %d, each of another invoice, %d at a time", pagePolls, pageWorkers))
	return nil
}

// fetch makes a request and discards the answer.
func fetch(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // it was read to its end
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, res.Status)
	}
	return nil
}

// inParallel does something with each id, pageWorkers at a time.
func inParallel(ctx context.Context, ids []string, do func(context.Context, string) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(pageWorkers)
	for _, id := range ids {
		group.Go(func() error { return do(ctx, id) })
	}
	return group.Wait()
}

// createPages creates invoices and returns their ids.
func (w *world) createPages(ctx context.Context, n int) ([]string, error) {
	var mu sync.Mutex
	var ids []string
	err := inParallel(ctx, make([]string, n), func(ctx context.Context, _ string) error {
		made, err := w.request(ctx)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		ids = append(ids, made.ID)
		return nil
	})
	return ids, err
}

// usage is CPU time that the server used in a time.
type usage struct{ cpu, took time.Duration }

// cpuOfVoids returns what it takes to make invoices void.
func (w *world) cpuOfVoids(ctx context.Context, ids []string) (usage, error) {
	before, err := w.server.cpu()
	if err != nil {
		return usage{}, err
	}
	begun := time.Now()
	if err := inParallel(ctx, ids, func(ctx context.Context, id string) error {
		_, err := w.server.api.VoidInvoice(ctx, id)
		return err
	}); err != nil {
		return usage{}, err
	}
	if _, err := w.cpuOver(ctx, time.Second); err != nil { // until the last events were sent
		return usage{}, err
	}
	after, err := w.server.cpu()
	return usage{after - before, time.Since(begun)}, err
}

// cpuOver returns the CPU time that the server uses in a time.
func (w *world) cpuOver(ctx context.Context, during time.Duration) (time.Duration, error) {
	before, err := w.server.cpu()
	if err != nil {
		return 0, err
	}
	timer := time.NewTimer(during)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	after, err := w.server.cpu()
	return after - before, err
}
