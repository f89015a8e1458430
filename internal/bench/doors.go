package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/clientip"
	"github.com/quittance/quittance/internal/config"
)

const (
	// getRate is how many requests normal traffic makes in a second.
	getRate = 200
	// getTimeout bounds one of them.
	getTimeout = 10 * time.Second
	// doorsRounds is how often normal traffic is measured with and without the others.
	doorsRounds = 2
	// guessRate is how many keys are guessed in a second.
	guessRate = 10_000
	// slowPerDoor is how many slow connections each door has.
	slowPerDoor = 1000
	// attackerAddress is where guesses and slow connections come from: a trusted proxy, so
	// that the service limits guesses from this machine.
	attackerAddress = "127.0.0.2"
)

// measureDoors measures the latency of normal traffic while keys are guessed, and while
// slow clients hold connections at each door.
func (b *bench) measureDoors(ctx context.Context, kind string) (err error) {
	database, err := b.url(ctx, kind, "doors")
	if err != nil {
		return err
	}
	conf := serverConfig{
		Database: database, OwnDoors: true, Log: filepath.Join(b.dir, "doors_"+kind+".log"), PerOwner: config.DefaultPerOwner,
		Proxies: clientip.Proxies{Trusted: []netip.Prefix{netip.MustParsePrefix(attackerAddress + "/32")}, Header: clientip.XForwardedFor},
	}
	if b.profile != "" {
		conf.Profile = filepath.Join(b.profile, "doors-"+kind+".pprof")
	}
	w, err := b.start(ctx, conf)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	addresses, err := w.server.doorAddresses()
	if err != nil {
		return err
	}
	getter, err := w.newGetter(ctx)
	if err != nil {
		return err
	}
	defer getter.client.CloseIdleConnections()
	if _, err := getter.get(ctx, time.Second); err != nil {
		return err // warm up
	}
	for _, a := range []struct {
		what string
		attack
	}{
		{fmt.Sprintf("%d guesses/s at keys", guessRate), attack{Guessed: w.server.url}},
		{fmt.Sprintf("%d slow connections at each door", slowPerDoor), attack{Slow: addresses}},
	} {
		if err := b.withAndWithoutAttack(ctx, kind, w, getter, a.what, a.attack); err != nil {
			return fmt.Errorf("%s: %w", a.what, err)
		}
	}
	return nil
}

// withAndWithoutAttack measures normal traffic with and without an attack, in turns, so that
// other load on the machine affects both equally. For guesses there is a third turn, with as
// many requests to a bare server instead of the service.
func (b *bench) withAndWithoutAttack(ctx context.Context, kind string, w *world, g *getter, what string, a attack) error {
	var without, with, bare turns
	for range doorsRounds {
		if err := without.measure(ctx, w, g, attack{}, b.turn); err != nil {
			return err
		}
		if err := with.measure(ctx, w, g, a, b.turn); err != nil {
			return err
		}
		if a.Guessed != "" {
			if err := bare.measure(ctx, w, g, attack{Bare: true}, b.turn); err != nil {
				return err
			}
		}
	}
	p99, ceiling := quantile(with.took, 0.99), quantile(without.took, 0.99)
	seconds := doorsRounds * b.turn.Seconds()
	note := fmt.Sprintf("ceiling: without them, in turns; medians %v and %v; %s; CPUs used meanwhile: %.2f by the server, %.2f by the attacker",
		quantile(with.took, 0.5), quantile(without.took, 0.5), with.result.String(), with.server.Seconds()/seconds, with.attacker.Seconds()/seconds)
	if len(bare.took) > 0 {
		note += fmt.Sprintf("; p99 during as many requests to a bare net/http server: %v, median %v, CPUs used: %.2f by it and its clients",
			quantile(bare.took, 0.99), quantile(bare.took, 0.5), bare.attacker.Seconds()/seconds)
	}
	b.report.row(kind, fmt.Sprintf("GET of an invoice, %d/s, p99 during %s", getRate, what), p99, ceiling, fmt.Sprintf("%.2f", float64(p99)/float64(ceiling)), note)
	return nil
}

// turns are the measurements of normal traffic with one attack.
type turns struct {
	took             []time.Duration
	result           attackResult
	server, attacker time.Duration // of CPU
}

// measure adds a turn.
func (t *turns) measure(ctx context.Context, w *world, g *getter, a attack, during time.Duration) error {
	attacker, err := startAttack(ctx, a)
	if err != nil {
		return err
	}
	before, err := w.server.cpu()
	if err != nil {
		return errors.Join(err, attacker.stop())
	}
	took, err := g.get(ctx, during)
	after, err2 := w.server.cpu()
	used, err3 := attacker.cpu()
	result, err4 := attacker.finish()
	t.took = append(t.took, took...)
	t.result.add(result)
	t.server, t.attacker = t.server+after-before, t.attacker+used
	return errors.Join(err, err2, err3, err4)
}

// getter makes the requests of normal traffic.
type getter struct {
	client   *http.Client
	url, key string
}

// newGetter returns a getter of a new invoice, with a new key of the operator.
func (w *world) newGetter(ctx context.Context) (*getter, error) {
	made, err := w.request(ctx)
	if err != nil {
		return nil, err
	}
	_, key, err := w.server.api.CreateKey(ctx, apitypes.CreateKeyRequest{Name: "bench", Scopes: []string{"read"}})
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}, Timeout: getTimeout}
	return &getter{client, w.server.url + "/api/invoices/" + made.ID, key}, nil
}

// get makes requests at getRate, whether or not earlier ones were answered, and returns
// how long each took.
func (g *getter) get(ctx context.Context, during time.Duration) (took []time.Duration, failed error) {
	var mu sync.Mutex
	var group sync.WaitGroup
	err := paced(ctx, getRate, during, func(int) error {
		group.Go(func() {
			began := time.Now()
			err := g.once(ctx)
			elapsed := time.Since(began)
			mu.Lock()
			defer mu.Unlock()
			took = append(took, elapsed)
			failed = errors.Join(failed, err)
		})
		return nil
	})
	group.Wait()
	return took, errors.Join(err, failed)
}

func (g *getter) once(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+g.key)
	res, err := g.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // it was read to its end
	_, err = io.Copy(io.Discard, res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET of an invoice: %s", res.Status)
	}
	return err
}
