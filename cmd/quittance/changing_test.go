package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/server"
	"github.com/quittance/quittance/internal/test/certstest"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
	"github.com/quittance/quittance/internal/webhooks"
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

// changingService is a service of one or two replicas on one database, with its own chain, while its
// configuration changes.
type changingService struct {
	*testing.T // of all changes; the replicas end with it
	database   string
	db         *db.DB
	chain      *chaintest.Chain
	nodes      []string // two nodes of the chain
	secrets    *changingSecrets
	replicas   []*changingReplica
	paid       map[string]common.Hash // the transactions that paid, by invoice
	unchecked  []string               // invoices that were paid since the last check
}

// changingSecrets are the secrets that configurations refer to.
type changingSecrets struct {
	env, files map[string]string
	folder     string
}

// changingReplica is a replica that runs.
type changingReplica struct {
	key, url string
	end      func() error
}

func newChangingSecrets(t *testing.T) *changingSecrets {
	t.Helper()
	keys := make([]string, 3)
	for i := range keys {
		key := expect.Must(access.NewKey(access.Live, rand.Reader))
		keys[i] = key.Reveal()
	}
	secret := "whsec_" + strings.Repeat("MDEy", 10)
	c := &changingSecrets{folder: t.TempDir(), env: map[string]string{
		"KEY": keys[0], "KEY2": keys[1], "SECRET": secret, "SECRET2": secret + "MDEy", "PASSWORD": "password", "PASSWORD2": "another password",
		"PROVIDER": strings.Repeat("p", 32), "PROVIDER2": strings.Repeat("q", 32), "WRITER": strings.Repeat("1", 64), "WRITER2": strings.Repeat("2", 64),
		"MASTER": hexKey(t), "MASTER2": hexKey(t), "MASTER3": hexKey(t),
	}}
	c.files = map[string]string{
		"key": keys[1], "key2": keys[2], "secret": secret, "secret2": secret + "MDEz", "writer": strings.Repeat("1", 64), "writer2": strings.Repeat("2", 64),
		"master": hexKey(t), "master2": hexKey(t),
	}
	for _, name := range []string{"pay", "pay2"} {
		pair := certstest.New(t, time.Now().Add(time.Hour))
		certstest.Write(t, c.path(name+".pem"), pair.Certificate, c.path(name+".key"), pair.Key)
	}
	return c
}

// path returns the path of a file that exists.
func (c *changingSecrets) path(name string) string { return filepath.Join(c.folder, name) }

// parse returns a configuration.
func (c *changingSecrets) parse(text []byte) (config.Config, error) {
	return config.Parse(text, config.Source{
		Env: func(name string) (string, bool) { v, ok := c.env[name]; return v, ok },
		File: func(path string) ([]byte, error) {
			if text, ok := c.files[path]; ok {
				return []byte(text), nil
			}
			return os.ReadFile(path)
		},
		Mode: func(string) (fs.FileMode, error) { return 0o600, nil },
	})
}

// configure returns the service's first configuration with changes.
func (s *changingService) configure(changed values) (config.Config, error) {
	base := map[string]any{
		"listen": "127.0.0.1:0", "database": s.database, "masterKeyEnv": "MASTER", "access": map[string]any{"operatorKeyEnv": "KEY"}, "http": map[string]any{"stopDelay": "0s"},
		"merchants": []any{map[string]any{"id": "shop", "webhookUrl": "https://shop.example/hook", "webhookSecretEnv": "SECRET"}},
		"webhooks":  map[string]any{"proxy": "http://127.0.0.1:2"}, // so that every delivery waits
		"chains": []any{map[string]any{"chainKey": "house", "chainId": 5, "rpc": []any{map[string]any{"url": s.nodes[0]}}, "finality": 3, "latency": "100ms",
			"tokens": []any{map[string]any{"currency": "USDC", "address": changingToken, "decimals": 6}}}},
	}
	for _, path := range slices.Sorted(maps.Keys(changed)) {
		set(base, path, changed[path])
	}
	text, err := json.Marshal(base)
	if err != nil {
		return config.Config{}, err
	}
	return s.secrets.parse(text)
}

// start starts a replica with a changed configuration. If that was in force before and other replicas
// run, start makes it the newest first, as the error advises.
func (s *changingService) start(changed values) (*changingReplica, error) {
	cfg, err := s.configure(changed)
	if err != nil {
		return nil, err
	}
	started, err := s.run(cfg)
	if returned := (*ledger.ReturnedError)(nil); errors.As(err, &returned) {
		if err := server.ApplyConfiguration(s.Context(), serverConfig(cfg, nil, slog.New(slog.DiscardHandler), nil)); err != nil {
			return nil, err
		}
		return s.run(cfg)
	}
	return started, err
}

func (s *changingService) run(cfg config.Config) (*changingReplica, error) {
	listeners, err := server.ListenAll(s.Context(), addressesOf(cfg))
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(s.Context())
	is := serverConfig(cfg, listeners, slog.New(slog.DiscardHandler), nil)
	ready, ended := make(chan string, 1), make(chan error, 1)
	is.Ready = func(url string) { ready <- url }
	go func() { ended <- server.Run(ctx, is) }()
	select {
	case err := <-ended:
		stop()
		return nil, err
	case url := <-ready:
		return &changingReplica{key: cfg.OperatorKey.Reveal(), url: url, end: func() error {
			stop()
			return <-ended
		}}, nil
	}
}

// await polls until a condition holds, and reports whether it does in time.
func await(t *testing.T, holds func() bool) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
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

// create creates an invoice. It returns an empty id, and the answer, if the replica refuses.
func (s *changingService) create(t *testing.T, at *changingReplica) (id, answer string) {
	t.Helper()
	body := fmt.Sprintf(`{"merchantId":"shop","merchantAddress":%q,"amount":"1000000","currency":"USDC","chainKey":"house","collection":"direct","expiresAt":%d}`,
		changingAddress, chaintest.GenesisTime+1_000_000)
	r := expect.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, at.url+"/api/invoices", strings.NewReader(body)))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+at.key)
	answered, err := http.DefaultClient.Do(r)
	expect.OK(t, err)
	defer func() { _ = answered.Body.Close() }()
	text, err := io.ReadAll(answered.Body)
	expect.OK(t, err)
	if answered.StatusCode != http.StatusCreated {
		return "", fmt.Sprint(answered.Status, " ", string(text))
	}
	var made struct{ ID string }
	if err := json.Unmarshal(text, &made); err != nil || made.ID == "" {
		t.Fatalf("create: %s, %v", text, err)
	}
	return made.ID, ""
}

// mustCreate creates an invoice.
func (s *changingService) mustCreate(t *testing.T, at *changingReplica) string {
	t.Helper()
	id, answer := s.create(t, at)
	if id == "" {
		t.Fatalf("create: %s", answer)
	}
	return id
}

// pay mines a transfer that pays an invoice.
func (s *changingService) pay(t *testing.T, id string) {
	t.Helper()
	inv, err := ledger.NewReader(s.db).Invoice(t.Context(), id)
	expect.OK(t, err)
	tx := chaintest.NewTx(chaintest.Transfer(inv.Token, invoice.Address{1}, inv.PayTo(), inv.TransferAmount))
	s.chain.Mine(tx)
	s.paid[id] = tx.Hash
	s.unchecked = append(s.unchecked, id)
}

// step restarts one replica after the other with another configuration, while one payment waits to be final, others are
// made during the restart, and all events wait to be delivered. It returns the configuration in force.
func (s *changingService) step(t *testing.T, from, to changeStep) changeStep {
	t.Helper()
	var unread string
	if from.then == serves {
		pending := s.mustCreate(t, s.replicas[0])
		s.pay(t, pending)
		if !await(t, func() bool { return s.events(t, pending)[invoice.EventReceived] == 1 }) {
			t.Fatal("a payment was not seen before the change")
		}
		unread = s.mustCreate(t, s.replicas[0])
	}
	in := to
	for i, old := range s.replicas {
		if err := old.end(); err != nil {
			t.Errorf("replica %d: %v", i, err)
		}
		if i == 0 && unread != "" {
			s.pay(t, unread)
		}
		started, err := s.start(to.set)
		if (err != nil) != (to.then == refuses) {
			t.Fatalf("the start of replica %d: %v, want that it %s", i, err, to.then)
		}
		if err != nil {
			in = from
			if started, err = s.start(from.set); err != nil {
				t.Fatalf("with the former configuration: %v", err)
			}
		}
		s.replicas[i] = started
		if in.then == serves && i == 0 {
			s.payBetween(t, from)
		}
		if to.then == refuses {
			break
		}
	}
	s.chain.MineEmpty(5)
	if in.then != waits {
		s.check(t)
	}
	return in
}

// payBetween pays invoices that are created while one replica has the new configuration, and another
// one the former. The latter may refuse to create invoices.
func (s *changingService) payBetween(t *testing.T, from changeStep) {
	t.Helper()
	ids := []string{s.mustCreate(t, s.replicas[0])}
	for _, old := range s.replicas[1:] {
		if from.then == waits { // it may have another database
			break
		}
		if id, _ := s.create(t, old); id != "" {
			ids = append(ids, id)
		}
	}
	for _, id := range ids {
		s.pay(t, id)
	}
}

// events counts the events of an invoice by type.
func (s *changingService) events(t *testing.T, id string) map[invoice.EventType]int {
	t.Helper()
	events, err := webhooks.NewReader(s.db).Events(t.Context(), webhooks.EventFilter{InvoiceID: id, After: new(int64), Limit: 50})
	expect.OK(t, err)
	seen := make(map[invoice.EventType]int)
	for _, e := range events {
		seen[e.Type]++
	}
	return seen
}

// check waits until every invoice is paid. Each was paid only by its transfer, and has exactly that payment's events.
func (s *changingService) check(t *testing.T) {
	t.Helper()
	var inv invoice.Invoice
	if !await(t, func() bool {
		return !slices.ContainsFunc(s.unchecked, func(id string) bool {
			var err error
			inv, err = ledger.NewReader(s.db).Invoice(t.Context(), id)
			return err != nil || inv.Status != invoice.Paid
		})
	}) {
		t.Fatalf("invoice %s is %s", inv.ID, inv.Status)
	}
	for _, id := range s.unchecked {
		payments, err := ledger.NewReader(s.db).NewestPayments(t.Context(), id, 9)
		if err != nil || len(payments) != 1 || common.Hash(payments[0].TxHash) != s.paid[id] {
			t.Errorf("the payments of %s are %+v, %v; want one by %s", id, payments, err, s.paid[id])
		}
		want := map[invoice.EventType]int{"invoice.created": 1, "payment.received": 1, "invoice.paid": 1}
		if got := s.events(t, id); !maps.Equal(got, want) {
			t.Errorf("%s has the events %v, want %v", id, got, want)
		}
	}
	s.unchecked = nil
}

// checkAll checks every invoice again, and that no transfer was recorded for another purpose.
func (s *changingService) checkAll(t *testing.T) {
	t.Helper()
	s.unchecked = slices.Collect(maps.Keys(s.paid))
	s.check(t)
	recorded := 0
	if err := dbtest.SQL(t, s.database).QueryRowContext(t.Context(), "SELECT count(*) FROM payments").Scan(&recorded); err != nil || recorded != len(s.paid) {
		t.Errorf("%d payments are recorded of %d transfers, %v", recorded, len(s.paid), err)
	}
}

// newChangingService starts a service on a database.
func newChangingService(t *testing.T, database string, replicas int, secrets *changingSecrets) *changingService {
	t.Helper()
	s := &changingService{T: t, database: database, db: dbtest.Open(t, database), chain: chaintest.New(5), secrets: secrets, paid: make(map[string]common.Hash)}
	for _, last := range []byte{0xc0, 0xc1} {
		s.chain.Token(invoice.Address{19: last}, 6)
	}
	s.chain.Contract(invoice.Address{19: 0xaa})
	s.chain.Contract(invoice.Address{19: 0xab})
	s.chain.MineEmpty(3)
	s.nodes = []string{s.chain.Serve(t).URL, s.chain.Serve(t).URL}
	for range replicas {
		r, err := s.start(nil)
		expect.OK(t, err)
		s.replicas = append(s.replicas, r)
	}
	return s
}

func hexKey(t *testing.T) string {
	t.Helper()
	key := make([]byte, 32)
	expect.Success(t)(rand.Read(key))
	return fmt.Sprintf("%x", key)
}

// change takes the steps of a change, and then returns to the first configuration.
func (s *changingService) change(t *testing.T, steps []changeStep) {
	t.Helper()
	in := changeStep{}
	for _, to := range append(slices.Clone(steps), changeStep{}) {
		if in = s.step(t, in, to); t.Failed() {
			t.Fatalf("after the change to %v", to.set)
		}
	}
}

// together combines changes that do not contradict each other, up to a number of settings. Changes
// with a step that does not serve stay separate.
func (s *changingService) together(all map[string][]changeStep, most int) map[string][]changeStep {
	type combined struct {
		names []string
		steps []changeStep
	}
	var batches []*combined
	for _, name := range slices.Sorted(maps.Keys(all)) {
		steps := all[name]
		apart := slices.ContainsFunc(steps, func(c changeStep) bool { return c.then != serves })
		i := slices.IndexFunc(batches, func(b *combined) bool {
			return !apart && len(b.names) < most && s.merge(b.steps, steps) != nil
		})
		switch {
		case i < 0:
			batches = append(batches, &combined{[]string{name}, steps})
			if apart {
				batches[len(batches)-1].names = slices.Repeat([]string{name}, max(most, 1)) // takes no more
			}
		default:
			batches[i].names, batches[i].steps = append(batches[i].names, name), s.merge(batches[i].steps, steps)
		}
	}
	merged := make(map[string][]changeStep)
	for _, b := range batches {
		merged[strings.Join(slices.Compact(b.names), "+")] = b.steps
	}
	return merged
}

// merge returns the steps of two changes as one change, or nil if they contradict each other.
func (s *changingService) merge(a, b []changeStep) (both []changeStep) {
	for i := range max(len(a), len(b)) {
		merged := changeStep{set: values{}}
		for _, steps := range [][]changeStep{a, b} {
			if i >= len(steps) {
				continue
			}
			for path, to := range steps[i].set {
				for other, now := range merged.set {
					if path == other && !reflect.DeepEqual(to, now) || path != other && (strings.HasPrefix(path, other) || strings.HasPrefix(other, path)) {
						return nil
					}
				}
				merged.set[path] = to
			}
		}
		if _, err := s.configure(merged.set); err != nil {
			return nil
		}
		both = append(both, merged)
	}
	return both
}

// TestExtraChangeEverySetting adds, changes and removes every setting that docs/configuration.md has, under live state:
// while one payment waits to be final, others are made, and all events wait to be delivered. One replica on SQLite
// stops and starts for each change. Of two on PostgreSQL, one runs with the new configuration while the other one still
// has the former. Each invoice is paid once and no other event is sent, with the new configuration or, if that keeps
// the service from starting or from reading the chain, with the former one. Settings that depend on each other are
// changed together, unless QUITTANCE_TEST_EACH_SETTING=1.
func TestExtraChangeEverySetting(t *testing.T) {
	secrets := newChangingSecrets(t)
	const services = 4 // at the same time, per database
	for database, fresh := range dbtest.MigratedDatabases() {
		replicas, most := 1, 40
		if database == "postgres" {
			replicas = 2
		}
		if os.Getenv("QUITTANCE_TEST_EACH_SETTING") == "1" {
			most = 1
		}
		for n := range services {
			t.Run(fmt.Sprint(database, n), func(t *testing.T) {
				t.Parallel()
				begin := func() (*changingService, map[string][]changeStep) {
					s := newChangingService(t, fresh(t), replicas, secrets)
					return s, changes(s, fresh)
				}
				s, all := begin()
				checkChangesOfAll(t, all)
				all = s.together(all, most)
				for i, name := range slices.Sorted(maps.Keys(all)) {
					if i%services != n {
						continue
					}
					if !t.Run(name, func(t *testing.T) { s.change(t, all[name]) }) {
						s, all = begin()
						all = s.together(all, most)
					}
				}
				s.checkAll(t)
				for _, r := range s.replicas {
					expect.NoError(t, r.end())
				}
			})
		}
	}
}

// checkChangesOfAll fails the test unless there is a change of each setting that is documented.
func checkChangesOfAll(t *testing.T, all map[string][]changeStep) {
	t.Helper()
	text := expect.Must(os.ReadFile(testdeps.Repo("docs/configuration.md")))
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
}
