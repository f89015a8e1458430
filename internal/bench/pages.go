package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
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
	w, err := b.start(ctx, serverConfig{Database: url})
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
// meanwhile. The first of the ids have a page, the others are made void without one.
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
	pages := &openPages{address: strings.TrimPrefix(w.server.url, "http://")}
	defer pages.close()
	if err := inParallel(ctx, ids[:b.pages], pages.open); err != nil {
		return err
	}
	rest, err := w.cpuOver(ctx, pageRest)
	if err != nil {
		return err
	}
	after, peak, err := w.server.memory()
	if err != nil {
		return err
	}
	with, err := getter.get(ctx, b.turn)
	if err != nil {
		return err
	}
	seen := pages.events.Load()
	voids, err := w.cpuOfVoids(ctx, ids[:min(pageEvents, b.pages)])
	if err != nil {
		return err
	}
	heartbeats := time.Duration(float64(rest) * voids.took.Seconds() / pageRest.Seconds())
	count := fmt.Sprintf("%d open pages", b.pages)
	b.report.row(kind, "resident memory, "+count, fmt.Sprintf("%d MB", after>>20), "200 MB", fmt.Sprintf("%.2f", float64(after)/(200<<20)),
		fmt.Sprintf("%d MB before, %d MB at most; %.1f kB for a page", before>>20, peak>>20, float64(after-before)/float64(b.pages)/1000))
	b.report.row(kind, "CPU of waiting, "+count, fmt.Sprintf("%.3f CPUs", rest.Seconds()/pageRest.Seconds()), "", "", "heartbeats, and a look at the chain every second")
	p99, ceiling := quantile(with, 0.99), quantile(without, 0.99)
	b.report.row(kind, fmt.Sprintf("GET of an invoice, %d/s, p99 with %s", getRate, count), p99, ceiling, fmt.Sprintf("%.2f", float64(p99)/float64(ceiling)),
		fmt.Sprintf("ceiling: without them; medians %v and %v", quantile(with, 0.5), quantile(without, 0.5)))
	b.report.row(kind, "CPU of an event of a page", ((voids.cpu - alone.cpu - heartbeats) / pageEvents).Round(time.Microsecond), "200µs", "",
		fmt.Sprintf("an invoice is made void: %v with its page open, %v without, less the heartbeats of the others; %d events",
			(voids.cpu/pageEvents).Round(time.Microsecond), (alone.cpu/pageEvents).Round(time.Microsecond), pages.events.Load()-seen))
	return pages.failed()
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

// openPages are streams of checkout pages.
type openPages struct {
	address string
	events  atomic.Int64 // that arrived

	mu    sync.Mutex
	conns []net.Conn
	ended error // of the first stream that ended by itself
	done  bool
}

// open opens a stream and waits for its first event.
func (p *openPages) open(ctx context.Context, id string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", p.address)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.conns = append(p.conns, conn)
	p.mu.Unlock()
	if _, err := fmt.Fprintf(conn, "GET /checkout/%s/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n", id); err != nil {
		return err
	}
	lines := bufio.NewReaderSize(conn, 512)
	if err := p.next(lines); err != nil {
		return err
	}
	go func() {
		for err == nil {
			err = p.next(lines)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.done && p.ended == nil {
			p.ended = fmt.Errorf("a stream ended: %w", err)
		}
	}()
	return nil
}

// next reads up to the end of an event.
func (p *openPages) next(lines *bufio.Reader) error {
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		if strings.HasPrefix(string(line), "data: ") {
			p.events.Add(1)
			return nil
		}
	}
}

func (p *openPages) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = true
	for _, conn := range p.conns {
		_ = conn.Close() // nothing is lost with it
	}
}

func (p *openPages) failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}
