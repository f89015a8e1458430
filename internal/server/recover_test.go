package server

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/test/alerttest"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/logtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// chainNow returns the time of a clock that is not ahead of the scripted chains, which begin at GenesisTime.
func chainNow() time.Time { return time.Now().Add(-aheadOfChains) }

var aheadOfChains = max(0, time.Since(time.Unix(chaintest.GenesisTime, 0)))

// recoverConfig returns the configuration of a recovery of a database.
func recoverConfig(url string, c Chain) Config {
	return Config{
		Database: url, Chains: []Chain{c}, Access: Access{Mode: access.Test, Open: true}, Now: chainNow, Rand: rand.Reader,
		Logger: slog.New(slog.DiscardHandler), Merchants: Merchants{Configured: map[string]access.MerchantSettings{"m": {}}},
	}
}

// createdInvoice creates an invoice and returns it.
func createdInvoice(t *testing.T, base string) (inv apitypes.CreateInvoiceResponse) {
	t.Helper()
	a := ask(t, http.MethodPost, base+"/api/invoices", fmt.Sprintf(`{"merchantId": "m", "merchantAddress": "0x1111111111111111111111111111111111111111",
		"amount": "1000000", "currency": "USDC", "chainKey": "house", "expiresAt": %d}`, chaintest.GenesisTime+100_000)) // by the chain's time
	if err := json.Unmarshal([]byte(a.body), &inv); err != nil || a.status != http.StatusCreated {
		t.Fatalf("create: %d %s, %v", a.status, a.body, err)
	}
	return inv
}

// TestRecover restores a backup after the chain has advanced. Since the backup, an invoice was paid, one was closed,
// and others were created. One of those was paid at a settlement address that was first used after the backup.
func TestRecover(t *testing.T) {
	t.Parallel()
	config, c, _ := scriptedChain(t, "house", 7)
	config.Registry = invoice.Address{0x60}
	c.Contract(config.Registry)
	url := dbtest.Migrated(t)
	live := startServer(t, Config{Chains: []Chain{config}, Merchants: Merchants{Configured: map[string]access.MerchantSettings{"m": {}}}, Database: url})
	await(t, live.url, "readiness", func(status int, h health) bool { return status == http.StatusOK && h.Chains[0].Indexed == 3 })
	paid, closed := createdInvoice(t, live.url), createdInvoice(t, live.url)
	path := filepath.Join(t.TempDir(), "copy.db")
	must(t, db.Backup(t.Context(), url, path, time.Now()))
	live.stop()
	must(t, <-live.ended)

	hash := func(text string) invoice.Hash {
		h, err := invoice.ParseHash(text)
		must(t, err)
		return h
	}
	merchant, payer, lost, elsewhere := address(t, "0x1111111111111111111111111111111111111111"), invoice.Address{0xbb}, invoice.Hash{0x77}, invoice.Address{0x99}
	amount := invoice.NewAmount(1_000_000)
	id := hash(paid.OnChainInvoiceID)
	c.Mine(chaintest.NewTx(chaintest.Transfer(testToken, payer, merchant, amount), chaintest.Paid(config.Registry, id, payer, merchant, testToken, amount)))
	c.Mine(chaintest.NewTx(chaintest.Opened(config.Registry, lost), chaintest.Closed(config.Registry, hash(closed.OnChainInvoiceID))))
	c.Mine(chaintest.NewTx(chaintest.Transfer(testToken, payer, elsewhere, amount), chaintest.Paid(config.Registry, invoice.Hash{0x78}, payer, elsewhere, testToken, amount)))
	c.Mine(chaintest.NewTx(chaintest.Transfer(testToken, merchant, invoice.Address{0x98}, invoice.NewAmount(9))))
	c.Mine(chaintest.NewTx(chaintest.Transfer(testToken, payer, elsewhere, invoice.NewAmount(6)))) // not final

	copied := "sqlite:" + path
	report, err := Recover(t.Context(), recoverConfig(copied, config), RecoverOptions{})
	must(t, err)
	if len(report.Chains) != 1 || report.Timeline == "" || !strings.Contains(report.Reason, "quittance backup") {
		t.Fatalf("reported %+v", report)
	}
	if from, through, err := ledger.LostPast(t.Context(), dbtest.Open(t, copied), config.Key); err != nil || from != 4 || through != 8 {
		t.Errorf("the lost past is recorded from %d through %d, %v", from, through, err)
	}
	past := report.Chains[0]
	if past.From != 4 || len(past.Lost) != 2 || len(past.Closed) != 1 || past.Closed[0].InvoiceID != closed.ID {
		t.Errorf("found %+v", past)
	}
	found := make(map[string]string) // amounts and lost invoices of the payments
	for _, p := range past.Payments {
		found[p.To+" "+p.Amount] = p.OnChainID
	}
	want := map[string]string{elsewhere.String() + " 1000000": invoice.Hash{0x78}.String(), elsewhere.String() + " 6": ""}
	for key, id := range want {
		if found[key] != id {
			t.Errorf("the payment %s is for %q, want %q", key, found[key], id)
		}
	}
	if len(found) != len(want) {
		t.Errorf("unattributed are %v, want %v", found, want)
	}
	if got := past.Transfers; len(got) != 1 || got[0].From != merchant.String() || got[0].Amount != "9" || len(got[0].Payments) != 1 {
		t.Errorf("unrecognized transfers are %+v", got)
	}
	if text := report.Markdown(); !strings.Contains(text, lost.String()) || !strings.Contains(text, closed.ID) {
		t.Errorf("the document lacks an invoice:\n%s", text)
	}
	again := startServer(t, Config{Chains: []Chain{config}, Merchants: Merchants{Configured: map[string]access.MerchantSettings{"m": {}}}, Database: copied})
	for id, want := range map[string]string{paid.ID: `"status":"paid"`, closed.ID: `"status":"void"`} {
		awaitBody(t, again.url+"/api/invoices/"+id, want)
	}
	if _, err := webhooks.Timelines(t.Context(), dbtest.Open(t, copied)); err != nil {
		t.Error(err)
	}
}

// TestRecoverDropsPendingAddresses restores a backup of which the newest change is later than the newest block, with changes
// of addresses. One that waited then may have been canceled since, and does not take effect. One that had taken effect
// stays. A command after the restore does not change the time of the backup.
func TestRecoverDropsPendingAddresses(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		config, _, _ := scriptedChain(t, "house", 7)
		service := startServer(t, recoverConfig(url, config))
		await(t, service.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
		service.end(t)
		store, now := dbtest.Open(t, url), time.Unix(chaintest.GenesisTime, 0).Add(-access.DefaultDelay)
		merchants := access.NewMerchants(access.MerchantConfig{Store: store, Chains: []string{"house"}, Delay: access.DefaultDelay, Now: func() time.Time { return now }})
		list := func(ids ...byte) (c invoice.MerchantChange) {
			c.DefaultAddresses = map[string]invoice.Address{"house": {ids[0]}}
			for _, id := range ids {
				c.Allowed = append(c.Allowed, invoice.AllowedAddress{ChainKey: "house", Address: invoice.Address{id}})
			}
			return c
		}
		change := func(merchant string, c invoice.MerchantChange) {
			t.Helper()
			expect.Success(t)(merchants.Update(t.Context(), access.Principal{KeyID: "key_1", MerchantID: merchant, Scopes: access.Admin}, merchant, c))
		}
		for merchant, c := range map[string]invoice.MerchantChange{"early": list(1, 2), "between": list(21, 22), "late": list(11, 12)} {
			c.Name = &merchant
			expect.Success(t)(merchants.Create(t.Context(), access.Open(), merchant, c))
		}
		change("early", list(2, 1)) // takes effect before the newest block of the backup
		now = now.Add(access.DefaultDelay / 2)
		change("between", list(22, 21)) // takes effect after that block
		now = now.Add(3 * access.DefaultDelay / 2)
		change("late", list(11, 13))
		change("late", invoice.MerchantChange{DefaultAddresses: map[string]invoice.Address{"house": {13}}})
		byCommand := access.WithOrigin(t.Context(), access.Origin{Actor: access.ActorCommand + "ada"})
		must(t, store.Update(t.Context(), func(tx *db.Tx) error { // after the restore
			return access.AppendAudit(byCommand, tx, access.NewEntry(byCommand, now.Add(9*access.DefaultDelay), access.Change{Action: access.ActionKeyRevoke, Object: "key_1"}))
		}))
		_, err := Recover(t.Context(), recoverConfig(url, config), RecoverOptions{})
		must(t, err)
		now = now.Add(2 * access.DefaultDelay)
		for merchant, want := range map[string]invoice.MerchantChange{"early": list(2, 1), "between": list(22, 21), "late": list(11, 12)} {
			is, err := access.Merchant(t.Context(), store, merchant)
			must(t, err)
			is = is.At(now)
			if is.DefaultAddresses["house"] != want.DefaultAddresses["house"] || !is.Allows("house", want.Allowed[1].Address) || is.Allows("house", invoice.Address{13}) {
				t.Errorf("after the recovery, the addresses of %s are %v, and allowed are %v", merchant, is.DefaultAddresses, is.Allowed)
			}
			dropped, err := access.NewReader(store).AuditEntries(t.Context(), access.AuditFilter{MerchantID: merchant, Action: "merchant.pending.drop", Limit: 9})
			if err != nil || len(dropped) != map[string]int{"late": 1}[merchant] {
				t.Errorf("the audit log of %s has %+v, %v", merchant, dropped, err)
			}
		}
	})
}

// TestRecoverAsksAboutKeys requires a decision about the keys of a backup. Until it is made, the
// service does not start, and no work is done twice. A false alarm is dismissed without a decision.
func TestRecoverAsksAboutKeys(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		s := dbtest.Open(t, url)
		config, _, _ := scriptedChain(t, "house", 7)
		config.StartBlock = new(uint64(1)) // it was never read
		must(t, webhooks.BeginFirstTimeline(t.Context(), s, "tml_1", time.Now()))
		state := func(reason string) {
			t.Helper()
			must(t, s.Update(t.Context(), func(tx *db.Tx) error { return tx.SuspectRestore(t.Context(), reason, time.Now()) }))
		}
		state("a false alarm")
		_, err := Recover(t.Context(), recoverConfig(url, config), RecoverOptions{Dismiss: true})
		must(t, err)
		must(t, s.Update(t.Context(), func(tx *db.Tx) error {
			for _, id := range []string{"key_00000000000000000000000001", "key_00000000000000000000000002"} {
				key := access.Record{ID: id, Name: "Ada", Hash: [access.HashSize]byte{id[len(id)-1]}, Scopes: access.Standard, CreatedAt: time.Unix(1000, 0)}
				if err := access.LockKeys(t.Context(), tx); err != nil {
					return err
				}
				key.PersonID = "per_" + id[len(id)-1:]
				if _, err := tx.Exec(t.Context(), "INSERT INTO people (id, email, name, created_at) VALUES ($1, $2, 'Ada', 0)", key.PersonID, key.PersonID+"@example.com"); err != nil {
					return err
				}
				if _, err := tx.Exec(t.Context(), "INSERT INTO passkeys (id, person_id, name, credential, created_at) VALUES ($1, $2, 'phone', '{}', 0)", "pk"+key.PersonID, key.PersonID); err != nil {
					return err
				}
				if _, err := tx.Exec(t.Context(), "INSERT INTO accounts (person_id, issuer, subject, name, connected_at) VALUES ($1, 'https://id.example', $1, 'Example', 0)", key.PersonID); err != nil {
					return err
				}
				if err := access.InsertKey(t.Context(), tx, key); err != nil {
					return err
				}
			}
			return nil
		}))
		state("a lost past")
		for _, kept := range [][]string{{KeepAll, KeepNone}, {KeepNone, "key_00000000000000000000000001"}, {"key_00000000000000000000000003"}} {
			_, err := Recover(t.Context(), recoverConfig(url, config), RecoverOptions{KeepKeys: kept})
			if r, readErr := s.Recovery(t.Context()); err == nil || readErr != nil || r.State != db.RecoverySuspected {
				t.Errorf("keys %q: %v; the database is %+v, %v", kept, err, r, readErr)
			}
		}
		for range 2 {
			report, err := Recover(t.Context(), recoverConfig(url, config), RecoverOptions{})
			if !errors.Is(err, ErrKeysUndecided) || len(report.Keys) != 2 {
				t.Fatalf("undecided keys: %v, %+v", err, report.Keys)
			}
		}
		if r, err := s.Recovery(t.Context()); err != nil || r.State != db.RecoveryUnderWay || r.Reason != "a lost past" {
			t.Errorf("the database is %+v, %v", r, err)
		}
		_, err = Recover(t.Context(), recoverConfig(url, config), RecoverOptions{Dismiss: true})
		if err == nil {
			t.Error("a recovery that had begun was dismissed")
		}
		report, err := Recover(t.Context(), recoverConfig(url, config), RecoverOptions{KeepKeys: []string{"key_00000000000000000000000001"}})
		must(t, err)
		for _, k := range report.Keys {
			r, err := access.NewReader(s).Key(t.Context(), k.ID)
			_, passkeys, findErr := access.NewReader(s).PersonWithPasskeys(t.Context(), r.PersonID)
			if findErr != nil || (len(passkeys) == 1) != k.Kept || !strings.Contains(report.Markdown(), k.Email+`, with the passkeys ["phone"]`) {
				t.Errorf("the person of %+v has %d passkeys, %v; reported\n%s", k, len(passkeys), findErr, report.Markdown())
			}
			if err != nil || r.RevokedAt.IsZero() != (k.ID == "key_00000000000000000000000001") || k.Kept != (k.ID == "key_00000000000000000000000001") {
				t.Errorf("%+v was revoked at %s, %v", k, r.RevokedAt, err)
			}
		}
		if n, err := db.QueryRow(t.Context(), s, db.ScanCount, "SELECT count(*) FROM accounts"); err != nil || n > 0 {
			t.Errorf("%d accounts are still connected, %v", n, err)
		}
		all, err := webhooks.Timelines(t.Context(), s)
		if r, stateErr := s.Recovery(t.Context()); err != nil || stateErr != nil || len(all) != 2 || r.State != db.RecoveryNormal {
			t.Errorf("the database is %+v on timelines %+v, %v, %v", r, all, err, stateErr)
		}
	})
}

// TestRecoverUnreadChain recovers a backup that was made before its chain was first read. Invoices
// were created and lost since. The recovery asks for the block at which it must begin to read, and
// finds the invoices, also if an earlier recovery has read only newer blocks.
func TestRecoverUnreadChain(t *testing.T) {
	t.Parallel()
	for name, database := range dbtest.MigratedDatabases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, c, _ := scriptedChain(t, "house", 7)
			config.Registry = invoice.Address{0x60}
			c.Contract(config.Registry)
			c.Mine(chaintest.NewTx(chaintest.Opened(config.Registry, invoice.Hash{0x77})))
			c.MineEmpty(3)
			for _, state := range []db.RecoveryState{db.RecoverySuspected, db.RecoveryUnderWay} {
				url, config := database(t), config
				s := dbtest.Open(t, url)
				if state == db.RecoveryUnderWay {
					starts(t, url, config)
					if cur, err := ledger.NewReader(s).Cursor(t.Context(), "house"); err != nil || cur.Indexed.Number < 6 {
						t.Fatalf("the service has read up to block %d, %v", cur.Indexed.Number, err)
					}
				}
				must(t, s.Update(t.Context(), func(tx *db.Tx) error {
					return tx.SetRecovery(t.Context(), db.Recovery{State: state, Reason: "a lost past", Since: time.Unix(1000, 0)})
				}))
				if state == db.RecoverySuspected {
					must(t, webhooks.BeginFirstTimeline(t.Context(), s, "tml_1", time.Now()))
				}
				for range 2 {
					if _, err := Recover(t.Context(), recoverConfig(url, config), RecoverOptions{}); err == nil || !strings.Contains(err.Error(), "Set startBlock") {
						t.Errorf("%s: without startBlock, the recovery ended with %v", state, err)
					}
				}
				for _, first := range []uint64{0, 5} { // once it is recorded, it counts
					config.StartBlock = &first
					report, err := Recover(t.Context(), recoverConfig(url, config), RecoverOptions{})
					must(t, err)
					if past := report.Chains[0]; past.From != 1 || len(past.Lost) != 1 || past.Lost[0].OnChainID != (invoice.Hash{0x77}).String() {
						t.Errorf("%s: found %+v", state, past)
					}
				}
			}
		})
	}
}

// TestRecoverAgain runs a recovery again after it ended, as for another form of its report. Its
// findings remain, and no timeline begins. Once a service has run, the next recovery is a new one, which
// begins at the same block for some time, because copies of lost invoices may still arrive.
func TestRecoverAgain(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		config, blocks, _ := scriptedChain(t, "house", 7)
		serve := func() *running {
			t.Helper()
			r := startServer(t, recoverConfig(url, config))
			await(t, r.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
			return r
		}
		serve().end(t)
		now := time.Now
		recovered := func() (timelines int, from uint64) {
			t.Helper()
			blocks.MineEmpty(5)
			cfg := recoverConfig(url, config)
			cfg.Now = now
			report, err := Recover(t.Context(), cfg, RecoverOptions{OldHeads: true})
			must(t, err)
			all, err := webhooks.Timelines(t.Context(), dbtest.Open(t, url))
			must(t, err)
			return len(all), report.Chains[0].From
		}
		timelines, from := recovered()
		if again, fromAgain := recovered(); again != timelines || fromAgain != from {
			t.Errorf("run again, the recovery is on timeline %d from block %d, want %d from %d", again, fromAgain, timelines, from)
		}
		must(t, dbtest.Open(t, url).Update(t.Context(), func(tx *db.Tx) error { // as one that the recovery has watched
			return ledger.InsertLostAddresses(t.Context(), tx, "house", map[invoice.Address]invoice.Hash{{0x99}: {}})
		}))
		serve().end(t)
		if after, fromAfter := recovered(); after != timelines+1 || fromAfter != from {
			t.Errorf("after a service has run, a recovery is on timeline %d from block %d, want %d from %d", after, fromAfter, timelines+1, from)
		}
		filled, err := db.QueryRow(t.Context(), dbtest.Open(t, url), db.ScanCount, "SELECT count(*) FROM chain_audits WHERE part = 'older'")
		must(t, err)
		expect.Equal(t, filled, 0, "without a new lost address, gaps that were filled:")
		serve().end(t)
		now = func() time.Time { return time.Now().Add(keptPast + time.Hour) }
		if after, fromAfter := recovered(); after != timelines+2 || fromAfter <= from {
			t.Errorf("long after it, a recovery is on timeline %d from block %d, want %d from one above %d", after, fromAfter, timelines+2, from)
		}
	})
}

// TestImportAfterTwoRecoveries imports a lost invoice after a second recovery: a service has run since the first one, or a
// backup that was made since, or while it ran, was restored. Its payment, which is older than the second one, pays it.
func TestImportAfterTwoRecoveries(t *testing.T) {
	t.Parallel()
	for _, between := range []string{"a service has run", "a backup was restored", "it was interrupted, and a backup was restored"} {
		t.Run(between, func(t *testing.T) {
			t.Parallel()
			config, c, _ := scriptedChain(t, "house", 7)
			config.Registry = invoice.Address{0x60}
			c.Contract(config.Registry)
			url, to := dbtest.Migrated(t), address(t, "0x1111111111111111111111111111111111111111")
			configured := func(url string) Config {
				cfg := recoverConfig(url, config)
				holder := invoice.Merchant{DefaultAddresses: map[string]invoice.Address{"house": to}, Configured: true}
				cfg.Merchants.Configured = map[string]access.MerchantSettings{"m": {Merchant: holder}}
				return cfg
			}
			backup := func(of string) string {
				path := filepath.Join(t.TempDir(), "copy.db")
				must(t, db.Backup(t.Context(), of, path, time.Now()))
				return "sqlite:" + path
			}
			live := startServer(t, configured(url))
			await(t, live.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
			createdInvoice(t, live.url) // whose address stays watched
			copied := backup(url)
			lost := createdInvoice(t, live.url)
			live.end(t)
			id := expect.Must(invoice.ParseHash(lost.OnChainInvoiceID))
			c.Mine(chaintest.NewTx(chaintest.Opened(config.Registry, id)))
			amount := expect.Must(invoice.ParseAmount(lost.Invoice.TransferAmount))
			c.Mine(chaintest.NewTx(chaintest.Transfer(testToken, invoice.Address{0xbb}, to, amount)))
			c.MineEmpty(2)

			if between == "it was interrupted, and a backup was restored" {
				insertKey(t, copied)
				expect.Error(t, ErrKeysUndecided, "the first recovery")(Recover(t.Context(), configured(copied), RecoverOptions{}))
				copied = backup(copied)
				if _, err := Recover(t.Context(), configured(copied), RecoverOptions{Dismiss: true}); err == nil {
					t.Error("the backup of a recovery that had begun was dismissed")
				}
			} else {
				expect.Success(t)(Recover(t.Context(), configured(copied), RecoverOptions{}))
			}
			switch between {
			case "a service has run":
				run := startServer(t, configured(copied))
				await(t, run.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
				run.end(t)
			case "a backup was restored":
				copied = backup(copied)
			}
			c.MineEmpty(3)
			expect.Success(t)(Recover(t.Context(), configured(copied), RecoverOptions{KeepKeys: []string{KeepNone}}))
			into, err := OpenImporter(t.Context(), configured(copied))
			must(t, err)
			copyOf, err := ledger.ParseInvoiceCopy(expect.Must(json.Marshal(lost)))
			must(t, err)
			expect.Success(t)(into.Import(t.Context(), copyOf))
			must(t, into.Close())
			r := startServer(t, configured(copied))
			c.MineEmpty(2) // so that the blocks that are read again are final
			awaitBody(t, r.url+"/api/invoices/"+lost.ID, `"status":"paid"`)
		})
	}
}

// insertKey inserts a key of the API.
func insertKey(t *testing.T, url string) {
	t.Helper()
	key := access.Record{ID: "key_00000000000000000000000001", Name: "shop", Hint: "qk_test_", Hash: [access.HashSize]byte{1}, Scopes: access.Standard, CreatedAt: time.Unix(1000, 0)}
	must(t, dbtest.Open(t, url).Update(t.Context(), func(tx *db.Tx) error { return access.InsertKey(t.Context(), tx, key) }))
}

// TestOfflineWithoutDatabase names a database that does not exist, as with a wrong path. Nothing is created.
func TestOfflineWithoutDatabase(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "folder", "missing.db")
	config, _, _ := scriptedChain(t, "house", 7)
	cfg := recoverConfig("sqlite:"+path, config)
	_, dismissed := Recover(t.Context(), cfg, RecoverOptions{Dismiss: true})
	_, recovered := Recover(t.Context(), cfg, RecoverOptions{})
	_, imported := OpenImporter(t.Context(), cfg)
	cfg.Isolated, cfg.IsCopy = true, true
	for name, err := range map[string]error{"dismiss": dismissed, "recover": recovered, "import": imported, "isolated": Run(t.Context(), cfg)} {
		if !errors.Is(err, db.ErrNoDatabase) {
			t.Errorf("%s: %v, want %v", name, err, db.ErrNoDatabase)
		}
	}
	if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder of the database was created: %v", err)
	}
	cfg.Isolated, cfg.Database = false, dbtest.Postgres(t)
	for range 2 { // it stays empty
		expect.Error(t, db.ErrNoDatabase, "an empty PostgreSQL database")(Recover(t.Context(), cfg, RecoverOptions{}))
	}
}

func address(t *testing.T, text apitypes.Address) invoice.Address {
	t.Helper()
	a, err := invoice.ParseAddress(strings.ToLower(text))
	must(t, err)
	return a
}

func must(t *testing.T, err error) {
	t.Helper()
	expect.OK(t, err)
}

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
		began, alive := time.Now(), new(atomic.Bool)
		node.Intercept(func(ctx context.Context, _ string) error {
			if time.Since(began) > ledger.RevisionTTL+time.Second && s.Shared() {
				live, err := s.HasLiveReplica(ctx, time.Now())
				alive.Store(err == nil && live)
			}
			return errors.New("the node is down")
		})
		cfg, log := recoverConfig(url, config), new(logtest.Buffer)
		cfg.Chains, cfg.Logger = append(cfg.Chains, other), slog.New(slog.NewTextHandler(log, nil))
		_, err := Recover(t.Context(), cfg, RecoverOptions{Patience: 10 * time.Second})
		if err == nil {
			t.Fatal("a chain was not read, and the recovery ended")
		}
		if s.Shared() && !alive.Load() {
			t.Error("other processes do not see that the recovery runs")
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

// TestRecoverOldHead runs a recovery while the node is an hour behind: it ends with an error, also while the node reads
// on, unless the chain has stopped. It reports a transaction that could not be read.
func TestRecoverOldHead(t *testing.T) {
	t.Parallel()
	config, c, node := scriptedChain(t, "house", 7)
	config.StartBlock = new(uint64(1)) // it was never read
	url := dbtest.Migrated(t)
	must(t, webhooks.BeginFirstTimeline(t.Context(), dbtest.Open(t, url), "tml_1", time.Now()))
	unread := invoice.Hash{0x77}
	expect.Success(t)(dbtest.SQL(t, url).ExecContext(t.Context(), `INSERT INTO unread_transactions (chain_key, tx_hash, block_number, reason, detail, attempts, found_at, next_at)
		VALUES ('house', '`+unread.String()+`', 2, 'unreadable', '', 1, 0, 9000000000)`))
	cfg, began := recoverConfig(url, config), time.Now()
	cfg.Now = func() time.Time { return time.Unix(c.Head().Time, 0).Add(time.Hour + time.Since(began)) }
	for readsOn, patience := range map[bool]time.Duration{false: 3 * time.Second, true: 5 * time.Hour} { // by the time of the blocks
		node.Intercept(func(context.Context, string) error {
			if readsOn {
				c.MineEmpty(1)
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, err := Recover(ctx, cfg, RecoverOptions{Patience: patience})
		if err == nil || !strings.Contains(err.Error(), "so the nodes may be behind") || !strings.Contains(err.Error(), "--old-heads") {
			t.Errorf("reads on %t: it ended with %v", readsOn, err)
		}
		cancel()
	}
	node.Intercept(nil)
	report, err := Recover(t.Context(), cfg, RecoverOptions{OldHeads: true})
	must(t, err)
	past := report.Chains[0]
	if len(past.Unread) != 1 || past.Unread[0] != (ReportedUnread{unread.String(), 2}) || past.ToTime < chaintest.GenesisTime || !strings.Contains(report.Markdown(), unread.String()) {
		t.Errorf("reported %+v", past)
	}
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

// TestRunRefusesBackup starts the service on a backup without a recovery.
func TestRunRefusesBackup(t *testing.T) {
	t.Parallel()
	url := dbtest.Migrated(t)
	path := filepath.Join(t.TempDir(), "copy.db")
	expect.OK(t, db.Backup(t.Context(), url, path, time.Now()))
	err := Run(t.Context(), Config{
		Listeners: listenOn(t, Address{}), Database: "sqlite:" + path, Access: Access{Mode: access.Test, Open: true}, Now: time.Now,
		Logger: slog.New(slog.DiscardHandler), Ready: func(string) { t.Error("it serves") },
	})
	var restored db.RestoredError
	if !errors.As(err, &restored) || restored.Recovery.State != db.RecoveryBackup || errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	if _, err := OpenImporter(t.Context(), recoverConfig("sqlite:"+path, Chain{})); !errors.As(err, &restored) {
		t.Errorf("an import before the recovery: %v", err)
	}
}

// TestExtraRestoredWhileRunning sets the database back under a service that runs. It stops its work,
// answers 503 with the reason, and does not start again.
func TestExtraRestoredWhileRunning(t *testing.T) {
	t.Parallel()
	url := dbtest.Migrated(t)
	advanced := make(chan struct{}, 1)
	config, _, _ := scriptedChain(t, "house", 7)
	run := startServer(t, Config{Database: url, Chains: []Chain{config}, TestClock: &TestClock{Real: time.Now, Advanced: advanced}})
	await(t, run.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	expect.Success(t)(dbtest.SQL(t, url).ExecContext(t.Context(), "UPDATE recovery SET heartbeats = -1"))
	advanced <- struct{}{} // a clock reading
	h := await(t, run.url, "the restore", func(status int, h health) bool { return status == http.StatusServiceUnavailable && h.Restored != "" })
	if !strings.Contains(h.Restored, "committed") {
		t.Errorf("the reason is %q", h.Restored)
	}
	if a := create(t, run.url, "house"); a.status != http.StatusServiceUnavailable {
		t.Errorf("create: %d %s", a.status, a.body)
	}
	alerttest.Fire(t, metricsOf(t, run.url, "quittance_database_restored 1", "quittance_ready 0"), "QuittanceDatabaseRestored", "QuittanceNotReady", "QuittanceChainHeadStuck")
	run.stop()
	if err := <-run.ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
	err := Run(t.Context(), Config{
		Listeners: listenOn(t, Address{}), Database: url, Access: Access{Mode: access.Test, Open: true}, Now: time.Now,
		Logger: slog.New(slog.DiscardHandler), Ready: func(string) { t.Error("it serves") },
	})
	var restored db.RestoredError
	if !errors.As(err, &restored) || restored.Recovery.State != db.RecoverySuspected {
		t.Errorf("it ended with %v", err)
	}
}

// TestIsolated runs a copy of a service that has an event to deliver. Its invoice expires, which
// writes an event. The copy sends no webhook, no mail, and no call to a node except reads.
func TestIsolated(t *testing.T) {
	t.Parallel()
	for name, database := range dbtest.MigratedDatabases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			receiver, received := newReceiver(t)
			config, c, node := scriptedChain(t, "house", 7)
			conn := database(t)
			live := startServer(t, Config{Chains: []Chain{config}, Merchants: Merchants{Configured: map[string]access.MerchantSettings{"m": {}}}, Database: conn})
			await(t, live.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
			made := create(t, live.url, "house")
			if made.status != http.StatusCreated {
				t.Fatalf("create: %d %s", made.status, made.body)
			}
			live.stop()
			expect.OK(t, <-live.ended)
			base, log, wrote := startIsolated(t, config, node, conn, receiver)

			var inv apitypes.InvoiceResponse
			expect.OK(t, json.Unmarshal([]byte(made.body), &inv))
			c.MineEmpty(2) // long after the invoice's end
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			for !strings.Contains(ask(t, http.MethodGet, base+"/api/invoices/"+inv.Invoice.ID, "").body, `"status":"expired"`) {
				if !clock.Sleep(ctx, 5*time.Millisecond, nil) {
					t.Fatalf("the copy does not read the chain: %s", ask(t, http.MethodGet, base+"/readyz", "").body)
				}
			}
			checkDeliveries(t, base)
			checkMarks(t, base, inv.Invoice.ID, log)
			if len(received) > 0 {
				t.Errorf("the copy sent the webhook %s", <-received)
			}
			if got := wrote(); len(got) > 0 {
				t.Errorf("the copy called %v, which are no reads", got)
			}
		})
	}
}

// startIsolated starts an isolated copy that is configured as the live service is, with everything that could send. It
// returns the methods that writers call and that were called at its node.
func startIsolated(t *testing.T, config Chain, node *chaintest.Node, conn, receiver string) (base string, log *logtest.Buffer, wrote func() []string) {
	t.Helper()
	key := expect.Must(crypto.GenerateKey())
	var mu sync.Mutex
	var calls []string
	node.Intercept(func(_ context.Context, method string) error {
		if method == "eth_sendRawTransaction" || method == "eth_getTransactionCount" || method == "eth_estimateGas" {
			mu.Lock()
			defer mu.Unlock()
			calls = append(calls, method)
		}
		return nil
	})
	config.OperatorKey = key
	log = new(logtest.Buffer)
	base = startServer(t, Config{
		Chains: []Chain{config}, Merchants: Merchants{Configured: map[string]access.MerchantSettings{"m": {WebhookURL: receiver, WebhookSecret: "whsec_of_the_shop"}}}, Database: conn, Isolated: true, IsCopy: true,
		WebhookAllow: webhooks.Loopback(), SMTP: &mailer.SMTP{Host: "127.0.0.1", Port: 1}, PublicURL: "https://pay.example.com", Hosts: []string{"pay.example.com"},
		KeepEvents: time.Nanosecond, KeepAttempts: time.Nanosecond, Logger: slog.New(slog.NewTextHandler(log, nil)),
	}).url
	return base, log, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return calls
	}
}

// checkDeliveries expects that the events of the live service and of the copy wait.
func checkDeliveries(t *testing.T, base string) {
	t.Helper()
	var list apitypes.EventList
	expect.OK(t, json.Unmarshal([]byte(ask(t, http.MethodGet, base+"/api/events?delivery=pending", "").body), &list))
	expect.Len(t, list.Events, 2, "events that wait:")
}

// checkMarks wants pages, answers, the readiness and the log to show that it is a copy, and every request that would
// change something to be refused.
func checkMarks(t *testing.T, base, invoiceID string, log *logtest.Buffer) {
	t.Helper()
	for path, shows := range map[string]string{
		"/readyz": `"isolated":true`, "/api/operator/status": `"isolated":true`, "/checkout/" + invoiceID: "This is an isolated copy",
		"/dashboard/sign-in": "This is an isolated copy", "/checkout/inv_x": "This is an isolated copy", "/api/invoices": "{", "/metrics": "quittance_", "/nothing": "not_found",
	} {
		a := ask(t, http.MethodGet, base+path, "")
		if a.header.Get("X-Service-Copy") != "isolated" || !strings.Contains(a.body, shows) {
			t.Errorf("GET %s: %d, header %q, lacks %q: %.300s", path, a.status, a.header.Get("X-Service-Copy"), shows, a.body)
		}
	}
	for _, request := range append(unsafeRequests(t), [2]string{http.MethodPost, "/dashboard/webhook/ping"}, [2]string{http.MethodPost, "/refunds/x"}) {
		if a := ask(t, request[0], base+request[1], "{}"); a.status != http.StatusForbidden || !strings.Contains(a.body, "isolated copy") {
			t.Errorf("%s %s: %d %s", request[0], request[1], a.status, a.body)
		}
	}
	if a := ask(t, http.MethodPost, base+"/dashboard/sign-in", ""); a.status == http.StatusForbidden {
		t.Errorf("nobody can sign in to look at the copy: %s", a.body)
	}
	for line := range strings.Lines(log.String()) {
		if !strings.Contains(line, "isolated=true") {
			t.Errorf("a line of the log does not show that it is of a copy: %s", line)
		}
	}
}

// TestIsolatedAddress refuses a copy that others could reach.
func TestIsolatedAddress(t *testing.T) {
	t.Parallel()
	listeners, err := ListenAll(t.Context(), []Address{{Listen: "0.0.0.0:0"}})
	expect.OK(t, err)
	err = Run(t.Context(), Config{Listeners: listeners, Isolated: true, Database: "sqlite:" + t.TempDir() + "/q.db", Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "want a loopback address") {
		t.Errorf("got %v", err)
	}
}

// withOperator returns a chain that the service writes to, and the operator's account.
func withOperator(t *testing.T) (config Chain, c *chaintest.Chain, node *chaintest.Node, account common.Address) {
	t.Helper()
	config, c, node = scriptedChain(t, "house", 7)
	key, err := crypto.GenerateKey()
	must(t, err)
	config.OperatorKey, config.Registry = key, invoice.Address{0x60}
	c.Contract(config.Registry)
	return config, c, node, crypto.PubkeyToAddress(key.PublicKey)
}

// starts starts the service, waits until it is ready, and stops it.
func starts(t *testing.T, url string, config Chain) {
	t.Helper()
	run := startServer(t, recoverConfig(url, config))
	await(t, run.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	run.stop()
	must(t, <-run.ended)
}

// isSuspected wants a start to end with evidence of a restore.
func isSuspected(t *testing.T, url string, config Chain, reason string) {
	t.Helper()
	cfg := recoverConfig(url, config)
	cfg.Listeners, cfg.Ready = listenOn(t, Address{}), func(string) { t.Error("it serves") }
	err := Run(t.Context(), cfg)
	var restored db.RestoredError
	if !errors.As(err, &restored) || restored.Recovery.State != db.RecoverySuspected || !strings.Contains(restored.Recovery.Reason, reason) {
		t.Errorf("it ended with %v", err)
	}
}

// TestUnknownNonces uses nonces of an operator that the database does not know, while the service is stopped.
func TestUnknownNonces(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		config, c, node, account := withOperator(t)
		c.SetNonce(account, 5)
		starts(t, url, config)
		c.SetNonce(account, 4) // behind
		starts(t, url, config)

		c.SetNonce(account, 7)
		node.Intercept(func(_ context.Context, method string) error {
			if method == "eth_getTransactionCount" {
				return errors.New("not now")
			}
			return nil
		})
		starts(t, url, config)
		node.Intercept(nil)
		for range 2 {
			isSuspected(t, url, config, "has sent 7 transactions")
		}
		_, err := Recover(t.Context(), recoverConfig(url, config), RecoverOptions{})
		must(t, err)
		starts(t, url, config)
		c.SetNonce(account, 8)
		isSuspected(t, url, config, "has sent 8 transactions")
		_, err = Recover(t.Context(), recoverConfig(url, config), RecoverOptions{Dismiss: true})
		must(t, err)
		for sent := range uint64(3) {
			c.SetNonce(account, 8+sent)
			starts(t, url, config)
		}
	})
}

// TestDeploymentIsNoEvidence deploys contracts from the operator's account while the service is stopped, and configures
// one of them. Later, or with more than the deployments, unknown nonces are evidence again.
func TestDeploymentIsNoEvidence(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		config, c, _, account := withOperator(t)
		c.SetNonce(account, 5)
		starts(t, url, config)
		c.SetNonce(account, 5+maxDeployments)
		config.Registry = invoice.Address{0x61}
		c.Contract(config.Registry)
		starts(t, url, config)
		starts(t, url, config)
		config.Registry = invoice.Address{0x62}
		c.Contract(config.Registry)
		c.SetNonce(account, 6+2*maxDeployments)
		isSuspected(t, url, config, "has sent 18 transactions on house, and the database knows of 11")
	})
}

// TestNoncesWhileAnotherReplicaRuns starts a replica after a person has sent with the operator's key. The replica that
// runs has noticed no loss.
func TestNoncesWhileAnotherReplicaRuns(t *testing.T) {
	t.Parallel()
	url := dbtest.MigratedPostgres(t)
	config, c, _, account := withOperator(t)
	c.SetNonce(account, 5)
	run := startServer(t, recoverConfig(url, config))
	await(t, run.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	c.SetNonce(account, 6)
	starts(t, url, config)
	run.stop()
	must(t, <-run.ended)
	c.SetNonce(account, 7)
	isSuspected(t, url, config, "has sent 7 transactions on house, and the database knows of 6")
}

// TestKeyThatReturns removes an operator's key, and gives it back after coins were moved by hand.
func TestKeyThatReturns(t *testing.T) {
	t.Parallel()
	url := dbtest.Migrated(t)
	config, c, _, account := withOperator(t)
	starts(t, url, config)
	without := config
	without.OperatorKey = nil
	starts(t, url, without)
	c.SetNonce(account, 1)
	starts(t, url, config)
}

// TestRegistryTransactionThatANodeLacks asks who sent a transaction of the registry. The node first
// fails, and then does not have the transaction yet.
func TestRegistryTransactionThatANodeLacks(t *testing.T) {
	t.Parallel()
	config, c, node, _ := withOperator(t)
	lacking := chaintest.NewProxy(t, node, 1)
	lacking.SetFaults(chaintest.Only{Methods: []string{"eth_getTransactionByHash"}, Fault: chaintest.Null{}})
	failing := chaintest.NewProxy(t, node, 1)
	failing.SetFaults(chaintest.Only{Methods: []string{"eth_getTransactionByHash"}, Fault: chaintest.Fail{}})
	var tries atomic.Int64
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		expect.NoError(t, err)
		r.Body = io.NopCloser(bytes.NewReader(body))
		nodes := []http.Handler{failing, lacking, node}
		if !bytes.Contains(body, []byte("eth_getTransactionByHash")) {
			node.ServeHTTP(w, r)
			return
		}
		nodes[min(tries.Add(1), 3)-1].ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	config.RPC = []string{front.URL}
	run := startServer(t, recoverConfig(dbtest.Migrated(t), config))
	await(t, run.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	c.Mine(signedBy(t, config.OperatorKey, 0, config.Registry, chaintest.Opened(config.Registry, invoice.Hash{3})))
	await(t, run.url, "the restore", func(status int, h health) bool { return status == http.StatusServiceUnavailable && h.Restored != "" })
	run.stop()
	must(t, <-run.ended)
}

// signedBy returns a call of the registry that is signed with a key.
func signedBy(t *testing.T, key *ecdsa.PrivateKey, nonce uint64, registry invoice.Address, logs ...chaintest.Log) chaintest.Tx {
	t.Helper()
	to := common.Address(registry)
	tx, err := types.SignNewTx(key, types.LatestSignerForChainID(big.NewInt(7)), &types.DynamicFeeTx{ChainID: big.NewInt(7), Nonce: nonce, Gas: 1, To: &to})
	must(t, err)
	return chaintest.SignedTx(tx, logs...)
}

// TestUnknownRegistryEvents announces commitments that the database does not know, in a registry that
// two services share. The other service's commitments are no evidence.
func TestUnknownRegistryEvents(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		config, c, _, account := withOperator(t)
		c.SetNonce(account, 5)
		run := startServer(t, recoverConfig(url, config))
		await(t, run.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
		other, err := crypto.GenerateKey()
		must(t, err)
		c.Mine(signedBy(t, other, 5, config.Registry, chaintest.Opened(config.Registry, invoice.Hash{1})))
		c.Mine(signedBy(t, config.OperatorKey, 4, config.Registry, chaintest.Opened(config.Registry, invoice.Hash{2})))
		c.Mine(chaintest.NewTx(chaintest.Closed(config.Registry, invoice.Hash{1})))
		c.Mine(signedBy(t, config.OperatorKey, 5, config.Registry, chaintest.Opened(config.Registry, invoice.Hash{3})))
		h := await(t, run.url, "the restore", func(status int, h health) bool { return status == http.StatusServiceUnavailable && h.Restored != "" })
		if !strings.Contains(h.Restored, "with nonce 5") {
			t.Errorf("the reason is %q", h.Restored)
		}
		run.stop()
		must(t, <-run.ended)
		isSuspected(t, url, config, "with nonce 5 changed the registry on house")
	})
}

// TestForeignCommitments recovers a database with a registry that another installation uses, too. The other's invoices
// are not reported as lost, and remain known: if its account becomes the operator, they are lost ones.
func TestForeignCommitments(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		config, c, node, account := withOperator(t)
		starts(t, url, config)
		other, err := crypto.GenerateKey()
		must(t, err)
		opened := func(id byte) chaintest.Log { return chaintest.Opened(config.Registry, invoice.Hash{id}) }
		c.Mine(signedBy(t, other, 0, config.Registry, opened(1), opened(2)))
		c.Mine(signedBy(t, config.OperatorKey, 0, config.Registry, opened(3)))
		c.Mine(signedBy(t, other, 1, config.Registry, chaintest.Closed(config.Registry, invoice.Hash{4}))) // opened before the backup
		c.Mine(chaintest.NewTx(opened(5)))                                                                 // its signature is not known
		c.Mine(chaintest.NewTx(chaintest.Paid(config.Registry, invoice.Hash{6}, invoice.Address{0xbb}, invoice.Address{0x99}, testToken, invoice.NewAmount(1))))
		reported := func(foreign string, lost ...byte) {
			t.Helper()
			report, err := Recover(t.Context(), recoverConfig(url, config), RecoverOptions{})
			must(t, err)
			var want, got []string
			for _, id := range lost {
				want = append(want, invoice.Hash{id}.String())
			}
			for _, l := range report.Chains[0].Lost {
				got = append(got, l.OnChainID)
			}
			if !slices.Equal(got, want) {
				t.Errorf("lost are %v, want %v", got, want)
			}
			var others []string
			for _, o := range report.Chains[0].Foreign {
				others = append(others, fmt.Sprint(o.Account, " ", o.Invoices, " from ", o.FirstBlock))
				if text := report.Markdown(); !strings.Contains(text, o.Account) {
					t.Errorf("the document lacks account %s:\n%s", o.Account, text)
				}
			}
			if got := strings.Join(others, ", "); got != foreign {
				t.Errorf("unknown accounts are %q, want %q", got, foreign)
			}
		}
		theirs := invoice.Address(crypto.PubkeyToAddress(other.PublicKey))
		reported(theirs.String()+" 3 from 4", 3, 5, 6)
		node.Intercept(func(_ context.Context, method string) error {
			if method == "eth_getTransactionByHash" {
				return errors.New("not now")
			}
			return nil
		})
		reported("", 1, 2, 3, 4, 5, 6) // better too many than too few
		node.Intercept(nil)
		config.OperatorKey = other // configured after the backup
		reported(invoice.Address(account).String()+" 1 from 5", 1, 2, 4, 5, 6)
	})
}
