package ledger_test

import (
	crand "crypto/rand"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// past is a history; a backup has only a part of it.
type past struct {
	*world
	r         *rapid.T
	ids       []string
	announced map[string]bool // commitments that the writer has opened
	closed    map[string]bool // commitments that the writer has closed
	inTime    map[string]bool // commitments that were closed before they expired
	raced     map[string]bool // invoices with a payment between their end and its close on the chain, which only a copy explains
	strays    int             // payments that no rule attributes; a person may have attributed them
	byHand    map[string]bool // invoices with payments that a person attributed
}

// act makes a random action of merchants, payers, people and the writer.
func (p *past) act() {
	pick := func() invoice.Invoice {
		if len(p.ids) == 0 {
			p.ids = append(p.ids, p.create().ID)
		}
		return p.invoice(rapid.SampledFrom(p.ids).Draw(p.r, "invoice"))
	}
	switch rapid.IntRange(0, 9).Draw(p.r, "act") {
	case 0, 1, 2:
		inv := p.create(func(d *invoice.Draft) {
			d.Amount = invoice.NewAmount(uint64(len(p.ids)+1) * 100_000)
			d.ExpiresAt = invoice.Unix(p.head().Time.Unix() + rapid.Int64Range(60, 4000).Draw(p.r, "lifetime"))
			d.Collection = rapid.SampledFrom([]invoice.Collection{invoice.Direct, invoice.Deposit}).Draw(p.r, "collection")
			if rapid.Bool().Draw(p.r, "unique") {
				d.Details.Reference, d.Details.UniqueReference = fmt.Sprint("order ", len(p.ids)), true
			}
		})
		p.ids = append(p.ids, inv.ID)
	case 3, 4:
		inv := pick()
		t := p.pay(inv.TransferAmount)
		if inv.IsDeposit() {
			t = p.deposit(inv, number(inv.Amount))
		}
		p.raced[inv.ID] = p.raced[inv.ID] || inv.Status != invoice.Open && !p.closed[inv.ID]
		p.mineBlock(t)
	case 5, 6:
		if _, err := p.Void(p.t.Context(), p.own(), pick().ID); err == nil && rapid.Bool().Draw(p.r, "closed at once") {
			p.write()
		}
	case 7:
		p.write()
	case 8:
		inv := pick()
		if inv.IsDeposit() {
			break
		}
		stray := p.pay(invoice.NewAmount(uint64(p.txs+1) * 1_000_003))
		p.strays++
		p.mineBlock(stray)
		if rapid.Bool().Draw(p.r, "by hand") {
			if _, err := p.attribute(p.payment(stray), inv); err == nil {
				p.byHand[inv.ID] = true
			}
		}
	case 9:
		p.advance(p.head().Time.Unix() + rapid.Int64Range(1, 2000).Draw(p.r, "seconds"))
	}
	p.seconds.Store(p.head().Time.Unix())
}

// mineBlock mines a final block.
func (p *past) mineBlock(transfers ...invoice.Transfer) {
	p.mine(p.head().Time.Unix()+1, transfers...)
	p.final()
}

// write mines the events of the writer.
func (p *past) write() {
	b := p.next(p.head().Time.Unix() + 1)
	for _, id := range p.ids {
		inv := p.invoice(id)
		add := func(kind ledger.RegistryEventKind, done map[string]bool) {
			if !done[id] {
				done[id] = true
				b.Registry = append(b.Registry, ledger.RegistryEvent{Registry: registry, Kind: kind, CommitmentID: inv.CommitmentID})
			}
		}
		if add(ledger.RegistryOpened, p.announced); inv.CloseIntent(false) {
			p.inTime[id] = p.inTime[id] || !p.closed[id] && !b.Time.After(inv.ExpiresAt)
			add(ledger.RegistryClosed, p.closed)
		}
	}
	p.observe(b)
	p.final()
}

// TestRestoredHistory plays histories, loses everything after a backup, recovers it, and imports the
// merchants' copies in any order. If a copy or the chain shows how an invoice ended, it has its former
// status, and no event contradicts an earlier one.
func TestRestoredHistory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		url := dbtest.Migrated(t)
		d := &database{url: url, store: dbtest.Open(t, url), sql: dbtest.SQL(t, url)}
		p := &past{world: d.world(t), r: r, announced: map[string]bool{}, closed: map[string]bool{}, inTime: map[string]bool{}, raced: map[string]bool{}, byHand: map[string]bool{}}
		for range rapid.IntRange(0, 15).Draw(r, "before the backup") {
			p.act()
		}
		copied := filepath.Join(t.TempDir(), "copy.db")
		p.must(db.Backup(t.Context(), url, copied, time.Now()))
		known, read := slices.Clone(p.ids), p.head().Number
		for range rapid.IntRange(1, 25).Draw(r, "after the backup") {
			p.act()
		}
		live := make(map[string]invoice.Invoice)
		for _, id := range p.ids {
			live[id] = p.invoice(id)
		}
		was := p.eventsByInvoice()
		copies := make(map[string]bool) // invoices of which the merchant has the last state
		p.restore(copied, read)
		p.importCopies(live, known, copies)
		p.Service = p.service()
		p.readGap()
		p.readGap()

		for id, before := range live {
			got, events := p.invoice(id), p.eventsByInvoice()[id]
			shown := copies[id] || p.inTime[id] || before.Status != invoice.Void && !p.byHand[id]
			if !shown || p.raced[id] {
				continue
			}
			for is, not := range map[string]string{"invoice.paid": "invoice.expired", "invoice.expired": "invoice.paid"} {
				if slices.Contains(was[id], is) && slices.Contains(events, not) || before.Status == invoice.Void && slices.Contains(events, not) {
					r.Errorf("invoice %s was %s, and had %v; after the recovery it has %v", id, before.Status, was[id], events)
				}
			}
			held := got.EndedInLostPast() && p.strays > 0 // a person decides
			if before.Status != invoice.Open && !held && got.Status != before.Status {
				r.Errorf("invoice %s was %s; after the recovery it is %s, closed in block %d of %d", id, before.Status, got.Status, got.ClosedBlock, read)
			}
		}
	})
}

// restore opens the backup, and reads the chain from it on.
func (p *past) restore(copied string, read uint64) {
	url := "sqlite:" + copied
	chain := p.blocks
	p.db = &database{url: url, store: dbtest.Open(p.t, url), sql: dbtest.SQL(p.t, url)}
	p.Service = p.service(func(c *ledger.Config) { c.Recovery = true })
	ctx := p.t.Context()
	p.must(p.db.store.Update(ctx, func(tx *db.Tx) error {
		_, err := ledger.RecoverFrom(ctx, tx, false, at(p.seconds.Load()))
		return err
	}))
	for _, b := range chain {
		if b.Number > read {
			p.must(p.Observe(ctx, p.chainKey, []ledger.Block{b}))
			if rapid.Bool().Draw(p.r, "final") {
				p.must(p.Confirm(ctx, p.chainKey, b.Header))
			}
		}
	}
	p.final()
	if n, err := p.WatchLost(ctx, p.chainKey); err != nil || n > 0 {
		p.must(err)
		p.must(p.ReadAgain(ctx, p.chainKey, read+1))
		p.readGap()
	}
}

// importCopies imports every lost invoice and some others, from copies of its last state, of its creation, or of both.
func (p *past) importCopies(live map[string]invoice.Invoice, known []string, copies map[string]bool) {
	var lines []ledger.InvoiceCopy
	for _, id := range slices.Sorted(maps.Keys(live)) {
		inv := live[id]
		created := inv
		created.Status = invoice.Open
		switch n := rapid.IntRange(0, 3).Draw(p.r, "copies"); {
		case n == 0 && slices.Contains(known, id):
			continue
		case n <= 1:
			lines = append(lines, copyOf(p.t, created, 3, "whsec_x"))
			continue
		case n == 2:
			lines = append(lines, copyOf(p.t, created, 3, "whsec_x"), copyOf(p.t, created, 1, ""))
		}
		copies[id] = true
		lines = append(lines, copyOf(p.t, created, 3, "whsec_x"), copyOf(p.t, inv, 0, ""))
	}
	order := make([]int, 2*len(lines))
	for i := range order {
		order[i] = i % len(lines)
	}
	order = rapid.Permutation(order).Draw(p.r, "order")
	for pass := range 3 {
		for _, n := range order {
			c := lines[n]
			if c.Ended() != (pass != 1) {
				continue
			}
			_, err := p.ImportInvoice(p.t.Context(), c, []string{"whsec_x"})
			unproved := pass < 2 && c.Body == nil && (errors.Is(err, ledger.ErrCopyUnproved) || errors.Is(err, ledger.ErrNotOfMerchant))
			if err != nil && !unproved && !p.raced[c.Invoice.ID] {
				p.r.Errorf("a copy of %s that is %s: %v", c.Invoice.ID, c.Invoice.Status, err)
			}
		}
	}
}

// eventsByInvoice returns the types of the events of each invoice.
func (p *past) eventsByInvoice() map[string][]string {
	events := make(map[string][]string)
	for _, e := range dbtest.Events(p.t, p.db.sql, p.merchant) {
		events[e.InvoiceID] = append(events[e.InvoiceID], string(e.Type))
	}
	return events
}

// The number of cases to play of each property, and the seed of the first one. The seeds are consecutive.
var (
	propertySeed    = flag.Uint64("property.seed", 1, "seed of the first case of a property")
	propertyCount   = flag.Uint64("property.count", 500, "how many cases of each property to play in memory, or half as many long ones; a 25th with -short")
	propertyOnDisks = flag.Uint64("property.stored", 4, "how many cases of each property to play on each database; one with -short")
)

// properties plays cases of a property, each a function of its seed: count in memory, and some on each database. open
// returns a ledger of a new chain. A case returns a description of the fault, or "".
func properties(t *testing.T, count uint64, play func(open func() *reader, random *rand.Rand) string) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		playCases(t, count, func() func(*rand.Rand) string {
			return func(r *rand.Rand) string { return play(func() *reader { return inMemory(t) }, r) }
		})
	})
	each(t, func(t *testing.T, d *database) {
		playCases(t, *propertyOnDisks, func() func(*rand.Rand) string {
			return func(r *rand.Rand) string { return play(func() *reader { return onDatabase(d.unstarted(t)) }, r) }
		})
	})
}

// storedProperties plays cases of a property on SQLite.
func storedProperties(t *testing.T, play func(d *database, random *rand.Rand) string) {
	t.Helper()
	playCases(t, 5**propertyOnDisks, func() func(*rand.Rand) string {
		d := &database{store: dbtest.Open(t, dbtest.SQLite(t))}
		return func(r *rand.Rand) string { return play(d, r) }
	})
}

// playCases plays cases with several workers.
func playCases(t *testing.T, count uint64, worker func() func(random *rand.Rand) string) {
	t.Helper()
	if testing.Short() {
		count = (count + 24) / 25
	}
	var next, failed atomic.Uint64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		play := worker()
		workers.Go(func() {
			for {
				seed := next.Add(1) - 1 + *propertySeed
				if seed >= *propertySeed+count || failed.Load() >= 5 || t.Failed() && failed.Load() == 0 {
					return
				}
				if wrong := play(rand.New(rand.NewPCG(seed, 0))); wrong != "" {
					failed.Add(1)
					t.Errorf("seed %d: %s\nagain: go test ./internal/ledger -run '^%s$' -property.seed=%d -property.count=1", seed, wrong, t.Name(), seed)
				}
			}
		})
	}
	workers.Wait()
	t.Logf("%d cases from seed %d on", count, *propertySeed)
}

// pick returns one of the values.
func pick[V any](r *rand.Rand, of ...V) V { return of[r.IntN(len(of))] }

// narrow is a source of randomness that yields numbers of two bytes below a bound, so that the first
// choices of suffixes are few.
type narrow struct {
	*rand.Rand
	high, below byte // the first byte, and the bound of the second
}

// Read fills two bytes in this way, and longer slices like any source.
func (n narrow) Read(into []byte) (int, error) {
	if len(into) != 2 {
		return crand.Read(into)
	}
	into[0], into[1] = n.high, byte(n.IntN(int(n.below)))
	return len(into), nil
}
