package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// pagePolls is how many polls the CPU time of one is measured with.
	pagePolls = 5000
	// pageRounds is how often the pages are opened, and pageEvents how many events the CPU time
	// of one is measured with each time.
	pageRounds = 3
	pageEvents = 2000
	// pageMerchants is how many merchants have the pages: the streams of one have a share.
	pageMerchants = 100
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
	ids, err := w.createPages(ctx, b.pages+2*pageRounds*pageEvents)
	if err != nil {
		return err
	}
	if err := b.measurePolls(ctx, kind, w, ids); err != nil {
		return err
	}
	return b.measureOpenPages(ctx, kind, w, ids)
}

// measureOpenPages opens and closes pages several times. It measures the memory and CPU time of
// their streams, and by turns what an event costs, and how long an API request takes, with and
// without them.
func (b *bench) measureOpenPages(ctx context.Context, kind string, w *world, ids []string) error {
	getter, err := w.newGetter(ctx)
	if err != nil {
		return err
	}
	defer getter.client.CloseIdleConnections()
	before, _, err := w.server.memory()
	if err != nil {
		return err
	}
	others := ids[b.pages+pageRounds*pageEvents:] // that have no page
	var rounds []pageRound
	for i := range pageRounds {
		shown := ids[i*pageEvents:][:b.pages]
		round, err := b.measurePageRound(ctx, w, shown, others[i*pageEvents:][:pageEvents], getter)
		if err != nil {
			return err
		}
		rounds = append(rounds, round)
	}
	b.reportPages(kind, before, rounds)
	return nil
}

// pageRound is what was measured between the opening of pages and their end.
type pageRound struct {
	without, with          []time.Duration // that requests took
	resident               int64           // bytes of memory
	waiting                time.Duration   // CPU time in pageRest
	voidShown, voidUnshown time.Duration   // CPU time of making an invoice void
}

// event returns the CPU time of an event of a page.
func (r pageRound) event() time.Duration { return r.voidShown - r.voidUnshown }

// latency returns the ratio of the p99 of requests with and without pages.
func (r pageRound) latency() float64 {
	return float64(exactQuantile(r.with, 0.99)) / float64(exactQuantile(r.without, 0.99))
}

// measurePageRound opens the pages of the shown invoices and closes them. Of the shown
// invoices pageEvents are made void, and all of the others, which have no page. Both are done
// while pages are open, so that heartbeats and collections of garbage weigh on both alike.
func (b *bench) measurePageRound(ctx context.Context, w *world, shown, others []string, getter *getter) (r pageRound, err error) {
	if r.without, err = getter.get(ctx, 2*b.turn); err != nil {
		return r, err
	}
	pages, err := openPages(ctx, strings.TrimPrefix(w.server.url, "http://"), shown)
	if err != nil {
		return r, err
	}
	if r.waiting, err = w.cpuOver(ctx, pageRest); err != nil {
		return r, errors.Join(err, pages.stop())
	}
	if r.resident, _, err = w.server.memory(); err != nil {
		return r, errors.Join(err, pages.stop())
	}
	if r.with, err = getter.get(ctx, 2*b.turn); err != nil {
		return r, errors.Join(err, pages.stop())
	}
	if r.voidUnshown, err = w.cpuOfVoids(ctx, others); err != nil {
		return r, errors.Join(err, pages.stop())
	}
	if r.voidShown, err = w.cpuOfVoids(ctx, shown[:min(pageEvents, len(shown))]); err != nil {
		return r, errors.Join(err, pages.stop())
	}
	_, err = pages.finish()
	return r, err
}

// reportPages reports rounds of pages. The server had so much memory before the first.
func (b *bench) reportPages(kind string, before int64, rounds []pageRound) {
	count := fmt.Sprintf("%d open pages", b.pages)
	slices.SortFunc(rounds, func(x, y pageRound) int { return cmp.Compare(x.resident, y.resident) })
	r := rounds[len(rounds)/2]
	b.report.row(kind, "resident memory, "+count, fmt.Sprintf("%d MB", r.resident>>20), "200 MB", fmt.Sprintf("%.2f", float64(r.resident)/(200<<20)),
		fmt.Sprintf("%d to %d MB in %d rounds, %d MB before the first; %.1f kB for a page", rounds[0].resident>>20, rounds[len(rounds)-1].resident>>20,
			len(rounds), before>>20, float64(r.resident-before)/float64(b.pages)/1000))
	b.report.row(kind, "CPU of waiting, "+count, fmt.Sprintf("%.3f CPUs", r.waiting.Seconds()/pageRest.Seconds()), "", "", "heartbeats, and a look at the chain twice a second")

	slices.SortFunc(rounds, func(x, y pageRound) int { return cmp.Compare(x.event(), y.event()) })
	r = rounds[len(rounds)/2]
	b.report.row(kind, "CPU of an event of a page", r.event(), "200µs", "",
		fmt.Sprintf("an invoice is made void: %v with its page open, %v without; %v to %v in %d rounds of %d", r.voidShown, r.voidUnshown,
			rounds[0].event(), rounds[len(rounds)-1].event(), len(rounds), pageEvents))

	slices.SortFunc(rounds, func(x, y pageRound) int { return cmp.Compare(x.latency(), y.latency()) })
	r = rounds[len(rounds)/2]
	b.report.row(kind, fmt.Sprintf("GET of an invoice, %d/s, p99 with %s", getRate, count), quantile(r.with, 0.99), quantile(r.without, 0.99), fmt.Sprintf("%.2f", r.latency()),
		fmt.Sprintf("ceiling: without them, just before; %.2f to %.2f in %d rounds; medians %v and %v", rounds[0].latency(), rounds[len(rounds)-1].latency(),
			len(rounds), quantile(r.with, 0.5), quantile(r.without, 0.5)))
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
	var made atomic.Int64
	err := inParallel(ctx, make([]string, n), func(ctx context.Context, _ string) error {
		made, err := w.requestFor(ctx, fmt.Sprint(aShop, "-", made.Add(1)%pageMerchants), 4_900_000)
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

// cpuOfVoids returns the CPU time that it takes to make an invoice void, the mean of all.
func (w *world) cpuOfVoids(ctx context.Context, ids []string) (time.Duration, error) {
	before, err := w.server.cpu()
	if err != nil {
		return 0, err
	}
	if err := inParallel(ctx, ids, func(ctx context.Context, id string) error {
		_, err := w.server.api.VoidInvoice(ctx, id)
		return err
	}); err != nil {
		return 0, err
	}
	if _, err := w.cpuOver(ctx, time.Second); err != nil { // until the last events were sent
		return 0, err
	}
	after, err := w.server.cpu()
	return ((after - before) / time.Duration(len(ids))).Round(time.Microsecond), err
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
