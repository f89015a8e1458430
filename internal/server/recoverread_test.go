package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/logtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// TestRecoverWaitsForNodes runs a recovery of two chains while the node of one is down. The recovery
// ends with an error that names the chain and the node, and continues when it is run again.
func TestRecoverWaitsForNodes(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		config, _, _ := scriptedChain(t, "house", 7)
		other, _, node := scriptedChain(t, "garden", 8)
		config.StartBlock, other.StartBlock = new(uint64(1)), new(uint64(1)) // the chains were never read
		s := dbtest.Open(t, url)
		must(t, webhooks.BeginFirstTimeline(t.Context(), s, "tml_1", time.Now()))
		must(t, s.Update(t.Context(), func(tx *db.Tx) error { return tx.SuspectRestore(t.Context(), "a lost past", time.Now()) }))
		node.Intercept(func(context.Context, string) error { return errors.New("the node is down") })
		cfg, log := recoverConfig(url, config), new(logtest.Buffer)
		cfg.Chains, cfg.Logger = append(cfg.Chains, other), slog.New(slog.NewTextHandler(log, nil))
		_, err := Recover(t.Context(), cfg, RecoverOptions{Patience: 10 * time.Second})
		if err == nil {
			t.Fatal("a chain was not read, and the recovery ended")
		}
		for _, part := range []string{"garden has made no progress for 10s", "the node is down", "chains[].rpc", "run this again"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("the error lacks %q: %v", part, err)
			}
		}
		if text := log.String(); !strings.Contains(text, "the past of a chain is being read") || !strings.Contains(text, "chain=garden") {
			t.Errorf("the log does not say what it waits for:\n%s", text)
		}
		if r, err := s.Recovery(t.Context()); err != nil || r.State != db.RecoveryUnderWay {
			t.Errorf("the state is %+v, %v", r, err)
		}
		node.Intercept(nil)
		report, err := Recover(t.Context(), cfg, RecoverOptions{})
		must(t, err)
		if len(report.Chains) != 2 {
			t.Errorf("reported %+v", report.Chains)
		}
	})
}

// TestIsolatedLiveDatabase runs --isolated --copy on the live database of a service. It is refused while a replica runs.
func TestIsolatedLiveDatabase(t *testing.T) {
	t.Parallel()
	url := dbtest.MigratedPostgres(t)
	config, _, _ := scriptedChain(t, "house", 7)
	live := startServer(t, recoverConfig(url, config))
	await(t, live.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	cfg := recoverConfig(url, config)
	cfg.Isolated, cfg.IsCopy, cfg.Listeners, cfg.Ready = true, true, listenOn(t, Address{}), func(string) { t.Error("it serves") }
	if err := Run(t.Context(), cfg); !errors.Is(err, errLiveDatabase) {
		t.Errorf("it ended with %v", err)
	}
	if _, err := OpenImporter(t.Context(), recoverConfig(url, config)); err == nil {
		t.Error("an import begins while a service runs")
	}
	if r, err := dbtest.Open(t, url).Recovery(t.Context()); err != nil || r.State != db.RecoveryNormal || !r.Isolated.IsZero() {
		t.Errorf("the live database is marked: %+v, %v", r, err)
	}
}

// TestUndoIsolation runs --isolated --copy by mistake on the live database of a stopped service.
// --dismiss undoes it, and the event that was written in isolation is delivered.
func TestUndoIsolation(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		config, c, _ := scriptedChain(t, "house", 7)
		receiver, received := newReceiver(t)
		configured := func() Config {
			cfg := recoverConfig(url, config)
			cfg.Merchants, cfg.WebhookAllow = Merchants{Configured: map[string]access.MerchantSettings{"m": {WebhookURL: receiver, WebhookSecret: "whsec_of_the_shop"}}}, webhooks.Loopback()
			return cfg
		}
		live := startServer(t, configured())
		await(t, live.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
		made := create(t, live.url, "house")
		if made.status != http.StatusCreated || <-received != "invoice.created" {
			t.Fatalf("create: %d %s", made.status, made.body)
		}
		live.stop()
		must(t, <-live.ended)

		cfg := configured()
		cfg.Isolated, cfg.IsCopy = true, true
		copied := startServer(t, cfg)
		c.MineAt(chaintest.GenesisTime + 1_000_000)
		c.MineEmpty(2) // long after the invoice's end
		await(t, copied.url, "the expiry", func(int, health) bool {
			return strings.Contains(ask(t, http.MethodGet, copied.url+"/api/invoices", "").body, `"status":"expired"`)
		})
		copied.stop()
		must(t, <-copied.ended)

		cfg = configured()
		cfg.Listeners, cfg.Ready = listenOn(t, Address{}), func(string) { t.Error("it serves") }
		if err := Run(t.Context(), cfg); !errors.Is(err, db.ErrMarkedCopy) || !strings.Contains(err.Error(), "--dismiss") {
			t.Errorf("it ended with %v", err)
		}
		_, err := Recover(t.Context(), configured(), RecoverOptions{Dismiss: true})
		must(t, err)
		startServer(t, configured())
		if event := <-received; event != "invoice.expired" {
			t.Errorf("received %s", event)
		}
	})
}
