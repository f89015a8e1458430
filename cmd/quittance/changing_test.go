package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/server"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// set sets a value of a configuration, or removes it if it is nil.
func set(in map[string]any, path string, to any) {
	name, rest, deeper := strings.Cut(path, ".")
	name, list := strings.CutSuffix(name, "[]")
	switch {
	case !deeper && to == nil:
		delete(in, name)
	case !deeper:
		in[name] = to
	case list:
		entries, _ := in[name].([]any)
		if len(entries) == 0 {
			entries = []any{map[string]any{}}
			in[name] = entries
		}
		set(entries[0].(map[string]any), rest, to)
	default:
		if in[name] == nil {
			in[name] = map[string]any{}
		}
		set(in[name].(map[string]any), rest, to)
	}
}

// changingWorld is a chain with a payment that is not final and another one after it, and a database from between them.
type changingWorld struct {
	seed, node string
	ids        []string
	env, files map[string]string
}

// configure returns the configuration of a copy of the seed, with changes.
func (w *changingWorld) configure(t *testing.T, database string, changed values) (config.Config, error) {
	t.Helper()
	base := map[string]any{
		"listen": "127.0.0.1:0", "database": database, "masterKeyEnv": "MASTER", "access": map[string]any{"operatorKeyEnv": "KEY"}, "http": map[string]any{"stopDelay": "0s"},
		"merchants": []any{map[string]any{"id": "shop", "webhookUrl": "https://shop.example/hook", "webhookSecretEnv": "SECRET"}},
		"webhooks":  map[string]any{"proxy": "http://127.0.0.1:2"}, // so that every delivery waits
		"chains": []any{map[string]any{"chainKey": "house", "chainId": 5, "rpc": []any{map[string]any{"url": w.node}}, "finality": 3, "latency": "100ms",
			"tokens": []any{map[string]any{"currency": "USDC", "address": changingToken, "decimals": 6}}}},
	}
	for _, path := range slices.Sorted(maps.Keys(changed)) {
		set(base, path, changed[path])
	}
	text, err := json.Marshal(base)
	if err != nil {
		t.Fatal(err)
	}
	return config.Parse(text, config.Source{
		Env: func(name string) (string, bool) { v, ok := w.env[name]; return v, ok },
		File: func(path string) ([]byte, error) {
			if text, ok := w.files[path]; ok {
				return []byte(text), nil
			}
			return nil, fs.ErrNotExist
		},
		Mode: func(string) (fs.FileMode, error) { return 0o600, nil },
	})
}

// run runs the service until done returns, and returns what Run does.
func (w *changingWorld) run(t *testing.T, cfg config.Config, done func(url string)) error {
	t.Helper()
	listeners, err := server.ListenAll(t.Context(), addressesOf(cfg))
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	is := serverConfig(cfg, listeners, slog.New(slog.DiscardHandler), nil)
	ready, ended := make(chan string, 1), make(chan error, 1)
	is.Ready = func(url string) { ready <- url }
	go func() { ended <- server.Run(ctx, is) }()
	select {
	case err := <-ended:
		return err
	case url := <-ready:
		done(url)
		stop()
		return <-ended
	}
}

// await polls until a condition holds, and reports whether it does in time.
func await(t *testing.T, holds func() bool) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// create creates an invoice, and returns its id and the amount to transfer.
func (w *changingWorld) create(t *testing.T, url string, amount int) (id string, transfer invoice.Amount) {
	t.Helper()
	body := fmt.Sprintf(`{"merchantId":"shop","merchantAddress":%q,"amount":"%d","currency":"USDC","chainKey":"house","expiresAt":%d}`, changingAddress, amount, chaintest.GenesisTime+1_000_000)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/invoices", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+w.env["KEY"])
	answered, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answered.Body.Close() }()
	text, err := io.ReadAll(answered.Body)
	if err != nil {
		t.Fatal(err)
	}
	var made struct {
		Invoice struct{ ID, TransferAmount string }
	}
	if err := json.Unmarshal(text, &made); err != nil || answered.StatusCode != http.StatusCreated {
		t.Fatalf("create: %d %s, %v", answered.StatusCode, text, err)
	}
	if transfer, err = invoice.ParseAmount(made.Invoice.TransferAmount); err != nil {
		t.Fatal(err)
	}
	return made.Invoice.ID, transfer
}

// check waits until both invoices are paid, each by one payment, with the events of that and no other. Every event waits
// to be delivered.
func (w *changingWorld) check(t *testing.T, url string) bool {
	t.Helper()
	s := storetest.Open(t, url)
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	paid := await(t, func() bool {
		return !slices.ContainsFunc(w.ids, func(id string) bool {
			inv, err := s.Invoice(t.Context(), id)
			return err != nil || inv.Status != invoice.Paid
		})
	})
	for _, id := range w.ids {
		events, err := s.Events(t.Context(), store.EventFilter{InvoiceID: id, After: new(int64), Limit: 50})
		if err != nil {
			t.Fatal(err)
		}
		seen := make(map[invoice.EventType]int)
		for _, e := range events {
			seen[e.Type]++
		}
		for typ, n := range seen {
			if n != 1 || !slices.Contains([]invoice.EventType{"invoice.created", "payment.received", "payment.confirmed", "invoice.paid"}, typ) {
				t.Errorf("%s has %d events %s", id, n, typ)
			}
		}
	}
	return paid
}

// newChangingWorld makes the world, and pays one invoice before the database is copied, and another one afterwards.
func newChangingWorld(t *testing.T) *changingWorld {
	t.Helper()
	c := chaintest.New(5)
	var token, registry, to invoice.Address
	token[19], registry[19], to[0] = 0xc0, 0xaa, 0x11
	other := token
	other[19] = 0xc1
	c.Token(token, 6)
	c.Token(other, 6)
	c.Contract(registry)
	c.MineEmpty(3)
	keys := make([]string, 2)
	for i := range keys {
		key, err := access.NewKey(access.Live, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		keys[i] = key.Reveal()
	}
	secret := "whsec_" + strings.Repeat("MDEy", 10)
	w := &changingWorld{
		node:  c.Serve(t).URL,
		env:   map[string]string{"KEY": keys[0], "KEY2": keys[1], "SECRET": secret, "SECRET2": secret + "MDEy", "PASSWORD": "password", "PROVIDER": strings.Repeat("p", 32), "WRITER": strings.Repeat("1", 64), "MASTER": hexKey(t), "MASTER2": hexKey(t)},
		files: map[string]string{"key": keys[1], "secret": secret, "writer": strings.Repeat("1", 64), "master": hexKey(t)},
	}
	url := storetest.Migrated(t)
	w.seed = strings.TrimPrefix(url, "sqlite:")
	cfg, err := w.configure(t, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	var second invoice.Amount
	pay := func(amount invoice.Amount) {
		c.Mine(chaintest.NewTx(chaintest.Transfer(token, invoice.Address{1}, to, amount)))
	}
	if err := w.run(t, cfg, func(url string) {
		id, first := w.create(t, url, 1_000_000)
		w.ids = append(w.ids, id)
		id, second = w.create(t, url, 2_000_000)
		w.ids = append(w.ids, id)
		pay(first)
		s := storetest.Open(t, cfg.Database)
		if !await(t, func() bool {
			events, err := s.Events(t.Context(), store.EventFilter{InvoiceID: w.ids[0], Type: invoice.EventReceived, After: new(int64), Limit: 9})
			return err == nil && len(events) == 1
		}) {
			t.Fatal("the first payment was not seen")
		}
		if err := s.Close(); err != nil { // so that the file has everything
			t.Fatal(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	pay(second)
	c.MineEmpty(5)
	return w
}

func hexKey(t *testing.T) string {
	t.Helper()
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", key)
}

// TestChangeEverySetting restarts a service with a change of every setting that docs/configuration.md has, while one
// payment waits to be final, another one was not read, and all events wait to be delivered. With the changed configuration or,
// if that keeps the service from starting or from reading the chain, with the former one afterwards, both invoices are paid once, and nothing else is said.
func TestChangeEverySetting(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	w := newChangingWorld(t)
	all := changes(t.TempDir(), w.node)
	for _, table := range strings.Split(string(text), "\n| setting |")[1:] {
		table, _, _ = strings.Cut(table, "\n\n")
		for _, row := range strings.Split(table, "\n| ")[1:] {
			cell, _, _ := strings.Cut(row, " |")
			for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
				if _, ok := all[name[1]]; !ok {
					t.Errorf("%s has no generated change; add it to changes", name[1])
				}
			}
		}
	}
	for name, change := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w.change(t, change)
		})
	}
}

// change runs the service on a copy of the database with a changed configuration, and then with the former one if that is needed.
func (w *changingWorld) change(t *testing.T, change settingChange) {
	t.Helper()
	url := storetest.SQLite(t)
	content, err := os.ReadFile(w.seed)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(strings.TrimPrefix(url, "sqlite:"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := w.configure(t, url, change.to)
	if err == nil {
		err = w.run(t, cfg, func(string) {
			if change.then == serves && !w.check(t, url) {
				t.Error("the invoices are not paid")
			}
		})
	}
	if (err != nil) != (change.then == refuses) {
		t.Errorf("the start: %v, want that it %s", err, change.then)
	}
	if change.then == serves {
		return
	}
	if cfg, err = w.configure(t, url, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.run(t, cfg, func(string) {
		if !w.check(t, url) {
			t.Error("with the former configuration the invoices are not paid")
		}
	}); err != nil {
		t.Errorf("with the former configuration: %v", err)
	}
}
