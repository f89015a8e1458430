package server

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/webhooks"
	"github.com/quittance/quittance/webhook"
)

// TestImporter restores a backup, recovers it, and creates an invoice again that was created after the backup, from the
// delivery that its merchant kept.
func TestImporter(t *testing.T) {
	t.Parallel()
	chain, _, _ := scriptedChain(t, "house", 7)
	cfg := Config{
		Chains: []Chain{chain}, Merchants: Merchants{Configured: map[string]access.MerchantSettings{"m": {WebhookURL: "http://127.0.0.1:1", WebhookSecret: "whsec_of_the_shop"}}},
		Database: dbtest.Migrated(t), WebhookAllow: webhooks.Loopback(),
	}
	live := startServer(t, cfg)
	await(t, live.url, "readiness", func(status int, h health) bool { return status == http.StatusOK && h.Chains[0].Confirmed > 0 })
	path := filepath.Join(t.TempDir(), "copy.db")
	expect.OK(t, db.Backup(t.Context(), cfg.Database, path, time.Now()))
	var made apitypes.CreateInvoiceResponse
	expect.OK(t, json.Unmarshal([]byte(create(t, live.url, "house").body), &made))
	var list apitypes.EventList
	if err := json.Unmarshal([]byte(ask(t, http.MethodGet, live.url+"/api/events", "").body), &list); err != nil || len(list.Events) != 1 {
		t.Fatalf("%v: %+v", err, list)
	}
	line, err := json.Marshal(map[string]any{
		"headers": map[string]string{webhook.HeaderSignature: webhook.Sign("whsec_of_the_shop", time.Unix(1, 0), list.Events[0].Event)}, "body": string(list.Events[0].Event),
	})
	expect.OK(t, err)
	copied, err := ledger.ParseInvoiceCopy(line)
	expect.OK(t, err)

	cfg.Database, cfg.Access, cfg.Now, cfg.Rand, cfg.Logger = "sqlite:"+path, Access{Mode: access.Test, Open: true}, time.Now, rand.Reader, slog.New(slog.DiscardHandler)
	var restored db.RestoredError
	if _, err := OpenImporter(t.Context(), cfg); !errors.As(err, &restored) {
		t.Errorf("before the recovery: %v", err)
	}
	if _, err := Recover(t.Context(), cfg, RecoverOptions{KeepKeys: []string{KeepAll}}); err != nil {
		t.Fatal(err)
	}
	into, err := OpenImporter(t.Context(), cfg)
	expect.OK(t, err)
	done, err := into.Import(t.Context(), copied)
	if err := errors.Join(err, into.Close()); err != nil || done.Invoice.CommitmentID.String() != made.OnChainInvoiceID {
		t.Fatalf("imported %+v, %v; want %+v", done, err, made)
	}
	again := startServer(t, cfg)
	if a := ask(t, http.MethodGet, again.url+"/api/invoices/"+made.ID, ""); a.status != http.StatusOK || !strings.Contains(a.body, `"transferAmount":"`+made.Invoice.TransferAmount+`"`) {
		t.Errorf("the imported invoice: %d %s", a.status, a.body)
	}
	var after apitypes.EventList // without its expiry, which the scripted chain has passed
	if err := json.Unmarshal([]byte(ask(t, http.MethodGet, again.url+"/api/events?type=invoice.created", "").body), &after); err != nil || len(after.Events) != 1 || after.Events[0].ID() != list.Events[0].ID() {
		t.Errorf("the event has another id: %v, %+v", err, after)
	}
	if _, err := OpenImporter(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("while a service runs: %v", err)
	}
}
