package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/poster"
	"github.com/quittance/quittance/internal/seed"
	"github.com/quittance/quittance/internal/wait"
)

const (
	// memoryLimit is the limit of Go's memory that is measured.
	memoryLimit = 64 << 20
	// limitReaders is how many clients read full pages of lists, and limitExports how many
	// read all invoices as CSV, over and over.
	limitReaders, limitExports = 32, 2
	// memoryPoll is the interval at which the memory is read.
	memoryPoll = 250 * time.Millisecond
)

// measureLimit measures the memory of a server and the CPU time of its garbage collector, without
// and with a memory limit, while invoices are created, their events delivered, and lists and
// exports read.
func (b *bench) measureLimit(ctx context.Context, kind string) (err error) {
	sink, port, err := startProcess(ctx, "sink", struct{}{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sink.stop()) }()
	var without memoryUse
	for _, limit := range []int64{0, memoryLimit} {
		use, err := b.underLimit(ctx, kind, limit, port)
		if err != nil {
			return fmt.Errorf("limit %d: %w", limit, err)
		}
		if limit == 0 {
			without = use
			continue
		}
		b.report.row(kind, fmt.Sprintf("Go's memory with a limit of %d MB, %d open, peak", limit>>20, b.open), fmt.Sprintf("%d MB", use.goBytes>>20),
			fmt.Sprintf("%d MB", limit>>20), fmt.Sprintf("%.2f", float64(use.goBytes)/float64(limit)),
			fmt.Sprintf("ceiling: the limit; %d MB without; %d and %d MB are resident; %d creators, %d readers, %d exports", without.goBytes>>20, use.resident>>20, without.resident>>20, connections, limitReaders, limitExports))
		b.report.row(kind, "CPU time of garbage collection with the limit", fmt.Sprintf("%.0f%%", 100*use.collection), fmt.Sprintf("%.0f%%", 100*without.collection), "",
			fmt.Sprintf("of Go's; ceiling: without; CPU per create, all included: %v and %v", use.perCreate(), without.perCreate()))
	}
	return nil
}

// memoryUse is what a server used under load.
type memoryUse struct {
	goBytes, resident int64   // the most at a time
	collection        float64 // the garbage collector's part of Go's CPU time
	cpu               time.Duration
	made              int64
}

func (u *memoryUse) perCreate() time.Duration {
	return (u.cpu / time.Duration(max(1, u.made))).Round(time.Microsecond)
}

// underLimit starts a server with a memory limit and open invoices, and measures it under load.
func (b *bench) underLimit(ctx context.Context, kind string, limit int64, sinkPort string) (use memoryUse, err error) {
	database, err := b.url(ctx, kind, fmt.Sprintf("limit_%d", limit))
	if err != nil {
		return use, err
	}
	rows, err := seed.New(seed.Config{
		Invoices: max(1, b.open), Merchants: listedMerchants, Open: b.open, Until: time.Now(), KeepEvents: config.DefaultRetention, KeepAttempts: config.DefaultRetention,
	})
	if err != nil {
		return use, err
	}
	w, err := startSeeded(ctx, database, rows, serverConfig{MemoryLimit: limit, Webhook: poster.Endpoint{URL: "http://127.0.0.1:" + sinkPort, Secret: deliverSecret}})
	if err != nil {
		return use, err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	if err := w.waitReady(ctx); err != nil {
		return use, err
	}
	began := time.Now()
	group, loaded := errgroup.WithContext(ctx)
	going := func() bool { return time.Since(began) < 2*b.turn && loaded.Err() == nil }
	group.Go(func() (err error) {
		use.made, err = create(loaded, w, connections, func(int64) bool { return going() })
		return err
	})
	for n := range limitReaders + limitExports {
		path, accept := "/api/invoices?limit=200", "application/json"
		switch {
		case n >= limitReaders:
			path, accept = "/api/invoices", "text/csv"
		case n%2 == 1:
			path = "/api/events?limit=200"
		}
		group.Go(func() error {
			for going() {
				if err := w.discard(loaded, path, accept); err != nil {
					return err
				}
			}
			return nil
		})
	}
	group.Go(func() error {
		for going() {
			if err := use.observe(ctx, w.server); err != nil {
				return err
			}
			wait.Sleep(loaded, memoryPoll, nil)
		}
		return nil
	})
	return use, group.Wait()
}

// observe notes the memory and the CPU time that a server has used.
func (u *memoryUse) observe(ctx context.Context, s *service) error {
	values, err := s.metrics(ctx)
	if err != nil {
		return err
	}
	now, _, err := s.memory()
	if err != nil {
		return err
	}
	if u.cpu, err = s.cpu(); err != nil {
		return err
	}
	u.resident = max(u.resident, now)
	u.goBytes = max(u.goBytes, int64(values["go_memstats_sys_bytes"]-values["go_memstats_heap_released_bytes"]))
	const classes = "go_cpu_classes_"
	u.collection = values[classes+"gc_total_cpu_seconds_total"] / (values[classes+"total_cpu_seconds_total"] - values[classes+"idle_cpu_seconds_total"])
	return nil
}

// metrics reads the metrics without labels of a server with one address for all doors.
func (s *service) metrics(ctx context.Context) (map[string]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close() //nolint:errcheck // it is read to its end, or the error is returned
	values := make(map[string]float64)
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		if name, text, ok := strings.Cut(lines.Text(), " "); ok && !strings.HasPrefix(name, "#") {
			if v, err := strconv.ParseFloat(text, 64); err == nil {
				values[name] = v
			}
		}
	}
	return values, lines.Err()
}

// discard makes a request of the operator and reads its answer to the end.
func (w *world) discard(ctx context.Context, path, accept string) (err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.server.url+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+operatorKey().Reveal())
	req.Header.Set("Accept", accept)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: status %d", path, res.StatusCode)
	}
	return nil
}
