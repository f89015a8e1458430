package main

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/server"
	"github.com/quittance/quittance/webhook"
)

// recoverPatience is how long a recovery waits for nodes before it is run again.
const recoverPatience = time.Minute

// backUp makes a backup of a SQLite database while the service runs, in some worlds. A later restart restores it.
func (s *service) backUp() {
	w, r := s.world, stream(s.world.seed, "backup")
	if w.database != nil || r.IntN(4) > 0 || !clock.Sleep(w.ctx, setupTime+time.Duration(r.Int64N(int64(w.active/2))), nil) {
		return
	}
	s.held <- struct{}{}
	defer func() { <-s.held }()
	path := filepath.Join(w.folder, "backup.db")
	err := db.Backup(w.ctx, s.database, path, s.now())
	w.log.say("operator", "back up the database: %v", err)
	if err == nil {
		s.backup, s.backedUp = path, s.keySteps
	}
}

// restore puts the backup in the database's place and recovers it, as docs/recovery.md says, before the service starts.
func (s *service) restore() {
	w := s.world
	s.putBack(s.backup)
	s.backup, s.keySteps = "", s.backedUp
	if s.start() == nil {
		w.fail("the service runs on a backup")
		_ = s.stopNow() // it failed already
		return
	}
	w.forget()
	r := stream(w.seed, "stale node")
	if target := w.drawNode(r, 2); target != "" && r.IntN(2) == 0 {
		w.plan.add(drawHead(r, target, time.Since(w.plan.began), 2*recoverPatience))
	}
	cfg, o := s.config(), server.RecoverOptions{Patience: recoverPatience}
	for _, c := range w.chains {
		c.both = w.changes
		conf := c.configured()
		conf.StartBlock = new(uint64(1)) // for a chain that the backup had never read
		cfg.Chains = append(cfg.Chains, conf)
	}
	var report server.RecoveryReport
	recovers := func() (err error) {
		recent := w.machine.recent()
		o.OldHeads = recent[len(recent)-1] > 5*time.Minute // the machine's clock is wrong
		report, err = server.Recover(w.ctx, cfg, o)
		return err
	}
	s.persist(true, func() (err error) { // the first run shows which keys the backup has
		if err = recovers(); errors.Is(err, server.ErrKeysUndecided) {
			err = nil
		}
		return err
	})
	for _, m := range w.merchants {
		id := m.key.Load().Key.ID
		if m.lostKey = !slices.ContainsFunc(report.Keys, func(k server.ReportedKey) bool { return k.ID == id }); !m.lostKey {
			o.KeepKeys = append(o.KeepKeys, id)
		}
	}
	if len(o.KeepKeys) == 0 {
		o.KeepKeys = []string{server.KeepNone}
	}
	s.persist(true, recovers)
	if stream(w.seed, "restored again").IntN(3) == 0 {
		again := filepath.Join(w.folder, "again.db")
		s.persist(true, func() error { return db.Backup(w.ctx, s.database, again, s.now()) })
		s.putBack(again)
		s.persist(true, recovers)
	}
	s.persist(true, func() error { return w.importCopies(cfg) })
}

// putBack puts a backup in the database's place.
func (s *service) putBack(backup string) {
	w, path := s.world, strings.TrimPrefix(s.database, "sqlite:")
	w.log.say("operator", "restore %s", filepath.Base(backup))
	for _, name := range []string{path + "-wal", path + "-shm", path} {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			w.fail("%v", err)
		}
	}
	if err := os.Rename(backup, path); err != nil {
		w.fail("%v", err)
	}
}

// importCopies gives the service back the invoices that merchants have copies of.
func (w *world) importCopies(cfg server.Config) (err error) {
	into, err := server.OpenImporter(w.ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, into.Close()) }()
	for _, o := range w.allOrders() {
		if len(o.acks) == 0 {
			continue
		}
		line, signed := o.copied()
		c, err := ledger.ParseInvoiceCopy(line)
		if err != nil {
			return err
		}
		done, err := into.Import(w.ctx, c)
		w.log.say("operator", "import %s: exists %v, proof %q, %v", o.name, done.Exists, done.Proof, err)
		switch unproved := errors.Is(err, ledger.ErrCopyUnproved) || errors.Is(err, ledger.ErrNotOfMerchant); {
		case unproved && signed:
			w.fail("%s: its invoice is lost, although the merchant has a signed copy: %v", o.name, err)
		case unproved:
			o.lost = true
		case err != nil:
			return err
		}
	}
	return nil
}

// copied returns the merchant's copy of the invoice: its delivery with its commitment, or the answer to the request.
// signed reports whether it is a delivery under a secret that no backup lacks.
func (o *order) copied() (line []byte, signed bool) {
	m, copied := o.merchant, any(o.acks[0])
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, got := range m.received {
		if strings.Contains(got.body, `"invoice.created"`) && strings.Contains(got.body, o.first().ID) {
			headers := object{webhook.HeaderSignature: got.signature}
			copied, signed = object{"headers": headers, "body": got.body, "onChainInvoiceId": o.acks[0].OnChainInvoiceID}, len(m.secrets) == 1
		}
	}
	line, err := json.Marshal(copied)
	if err != nil {
		panic(err)
	}
	return line, signed
}

// forget notes what a restored backup may have lost: what people have decided, accepted authorizations, and the amounts
// of remainders.
func (w *world) forget() {
	w.restored.Store(time.Now().UnixNano())
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.orders {
		o.voided, o.uncharge, o.charging = false, false, false
		for a := range o.issued {
			o.issued[a] = len(o.acks) > 0 && a == o.first().Invoice.TransferAmount
		}
	}
	for _, h := range w.handled {
		h.lost, h.done = h.done, nil
	}
	for _, m := range w.merchants {
		m.mu.Lock()
		for i := range m.lists {
			m.lists[i].until = time.Time{}
		}
		m.mu.Unlock()
	}
}

// decideAgain makes new keys for those that the backup lacked, and lets merchants repeat their decisions.
func (w *world) decideAgain() {
	for _, m := range w.merchants {
		var key apitypes.KeySecretResponse
		if m.lostKey && w.operator.insist(http.MethodPost, "/api/keys", object{"name": "shop", "merchantId": m.name, "scopes": []string{"admin"}}, &key) == nil {
			m.key.Store(&key)
		}
	}
	w.recovered.Store(time.Now().UnixNano())
	w.mu.Lock()
	all := slices.Collect(maps.Values(w.handled))
	w.mu.Unlock()
	for _, o := range w.allOrders() {
		if o.voiding && !o.lost {
			w.all.Go(o.voidAgain)
		}
	}
	for _, h := range all {
		w.mu.Lock()
		h.began[actAttribute] = time.Now()
		w.mu.Unlock()
		attributed := slices.Contains(h.lost, actAttribute) || slices.Contains(h.lost, actClaim)
		for tries := 0; tries < 12 && len(h.done) == 0 && attributed; tries++ {
			h.order.merchant.act(h, apitypes.InboxItem{}, actAttribute)
			w.pause(10 * time.Second) // until the payment is decided
		}
		if len(h.done) == 0 && attributed && !h.order.lost { // the payment was sent back
			w.all.Go(h.order.voidAgain)
		}
	}
}

// voidAgain repeats the merchant's request after a restore until the service carries it out or the invoice is not open.
// The service refuses it while blocks since the backup are being read, and while payments that cover the invoice are
// held.
func (o *order) voidAgain() {
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		err := o.void()
		var refused *refusedError
		later := errors.As(err, &refused) && (strings.Contains(refused.body, `"chain_behind"`) || strings.Contains(refused.body, `"payment_seen"`))
		if !later && !errors.Is(err, errLost) || !o.merchant.world.pause(pause) {
			return
		}
	}
}

// continueAt returns the cursor from which a reader of events continues after an error, or the same one.
func continueAt(cursor string, err error) string {
	var refused *refusedError
	var gone struct {
		After string `json:"after"`
	}
	if errors.As(err, &refused) && refused.status == http.StatusGone && json.Unmarshal([]byte(refused.body), &gone) == nil {
		return gone.After
	}
	return cursor
}

// isRestored reports whether a backup was restored.
func (w *world) isRestored() bool { return w.restored.Load() > 0 }
