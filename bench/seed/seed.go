// Package seed makes the rows that a service would have after years of work: invoices of many
// merchants with their payments, refunds, events and deliveries. The same Config makes the
// same rows. States and sums are computed by the rules of package invoice.
package seed

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

const (
	// Period is the time in which all invoices were created, evenly.
	Period = 365 * 24 * time.Hour
	// MaxInvoices bounds the invoices, so that no two have the same price and suffix.
	MaxInvoices = 15_000_000
	// MaxMerchants bounds the merchants.
	MaxMerchants = 1_000_000
	// largestShare is the part of the invoices that the largest merchant has.
	largestShare = 0.2
	// batch is how many invoices are made at a time.
	batch = 2000
	// openFor is how long an invoice can be paid, unless it is one of the open ones.
	openFor = 24 * time.Hour
)

// Config configures which rows are made.
type Config struct {
	Invoices, Merchants int
	// Open is how many of the newest invoices are open. Others are as well if they were
	// created shortly before Until.
	Open int
	// Seed makes other rows of the same kind.
	Seed uint64
	// Until is when the newest invoice was created, and the time of the rows' state.
	Until time.Time
	// KeepEvents and KeepAttempts are how long events and attempts were kept. Older ones
	// were removed, as by a service.
	KeepEvents, KeepAttempts time.Duration
	// BlockTime is the time between two blocks; with 0, all payments are in block 1.
	BlockTime time.Duration
}

func (c Config) check() error {
	switch {
	case c.Invoices < 1 || c.Invoices > MaxInvoices:
		return fmt.Errorf("%d invoices; want 1 to %d", c.Invoices, MaxInvoices)
	case c.Merchants < 1 || c.Merchants > MaxMerchants:
		return fmt.Errorf("%d merchants; want 1 to %d", c.Merchants, MaxMerchants)
	case c.Open < 0 || c.Open > c.Invoices:
		return fmt.Errorf("%d open invoices of %d", c.Open, c.Invoices)
	case c.Until.Unix() < int64(Period/time.Second):
		return errors.New("the rows would begin before 1970")
	}
	return nil
}

// Maker makes rows.
type Maker struct {
	Config
	first  time.Time
	shares []uint32 // of merchants, in 2^32nds, each with those before it
}

// New returns a maker of rows.
func New(c Config) (*Maker, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c.Until = c.Until.UTC().Truncate(time.Second)
	return &Maker{Config: c, first: c.Until.Add(-Period), shares: shares(c.Merchants)}, nil
}

// shares returns the shares of merchants, each with the shares before it: the share of the nth is the
// first share divided by a power of n (Zipf's law), which is chosen so that the first has
// largestShare.
func shares(n int) []uint32 {
	sum := func(power float64) (all float64) {
		for i := range n {
			all += math.Pow(float64(i+1), -power)
		}
		return all
	}
	low, high := 0.0, 8.0
	for range 30 {
		if mid := (low + high) / 2; sum(mid) > 1/largestShare {
			low = mid
		} else {
			high = mid
		}
	}
	all, through := make([]uint32, n), 0.0
	for i := range all {
		through += math.Pow(float64(i+1), -low) / sum(low)
		all[i] = uint32(math.Min(through, 1) * math.MaxUint32)
	}
	all[n-1] = math.MaxUint32
	return all
}

// At returns when an invoice was created. Invoices have numbers from 0, the oldest first.
func (m *Maker) At(n int) time.Time {
	return m.first.Add(time.Duration(n+1) * (Period / time.Duration(m.Invoices)))
}

// Owner returns the number of an invoice's merchant.
func (m *Maker) Owner(n int) int {
	i, _ := slices.BinarySearch(m.shares, uint32(m.random(n, drawOwner)>>32))
	return i
}

// Merchant returns the id of a merchant. The largest is number 0.
func Merchant(number int) string { return fmt.Sprintf("m%d", number) }

// Address returns the settlement address of a merchant.
func (m *Maker) Address(number int) invoice.Address { return address(m.hash(number, hashMerchant)) }

// Head returns the newest block.
func (m *Maker) Head() invoice.Header {
	p := m.position(m.Until, 0)
	return invoice.Header{Number: p.BlockNumber, Hash: p.BlockHash, Time: p.BlockTime}
}

// position returns the position of a transfer that was mined at a time.
func (m *Maker) position(at time.Time, log int) invoice.Position {
	p := invoice.Position{BlockNumber: 1, BlockTime: at, LogIndex: log}
	if m.BlockTime > 0 {
		p.BlockNumber += uint64(at.Sub(m.first) / m.BlockTime)
	}
	p.BlockHash = m.hash(int(p.BlockNumber), hashBlock)
	return p
}

// Batches returns all rows: first the chain and the merchants, then the invoices in the order of
// their creation. Numbers of events follow their times.
func (m *Maker) Batches() iter.Seq2[Rows, error] {
	return func(yield func(Rows, error) bool) {
		all := Rows{Since: m.first, Heads: map[string]invoice.Header{chain.Local: m.Head()}}
		for i := range m.Merchants {
			all.Addresses = append(all.Addresses, access.SettlementAddress{ChainKey: chain.Local, Address: m.Address(i), MerchantID: Merchant(i)})
		}
		if !yield(all, nil) {
			return
		}
		var log eventLog
		for first := 0; first < m.Invoices; first += batch {
			end := min(first+batch, m.Invoices)
			rows, err := m.rows(first, end, &log)
			if !yield(rows, err) || err != nil {
				return
			}
		}
	}
}

// rows returns the rows of the invoices from first to end, and the events that happened
// before invoice end was created.
func (m *Maker) rows(first, end int, log *eventLog) (rows Rows, err error) {
	rows.Voided = make(map[string]time.Time)
	for n := first; n < end; n++ {
		s := m.story(n)
		rows.Invoices, rows.Remainders = append(rows.Invoices, s.invoice), append(rows.Remainders, s.remainders...)
		rows.Payments, rows.Refunds = append(rows.Payments, s.payments...), append(rows.Refunds, s.refunds...)
		if s.invoice.Status == invoice.Void {
			rows.Voided[s.invoice.ID] = s.closedAt
		}
		for _, e := range s.events {
			log.add(e)
		}
	}
	until := m.Until
	if end < m.Invoices {
		until = m.At(end)
	}
	rows.Events, err = m.eventsBefore(until, log)
	return rows, err
}
