package ledger

import (
	"context"
	"crypto/rand"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

const (
	// randomTries is how many random suffixes are tried before all are looked up.
	randomTries = 3
	// maxTries is the number of tries after which no transfer amount is chosen. After randomTries they
	// take suffixes that were free when they were looked up; other transactions may take these first.
	maxTries = 2 * randomTries
	// maxLargerSuffix is the largest suffix of a remainder for which no suffix up to MaxSuffix is free. It
	// is below a cent.
	maxLargerSuffix = invoice.RoundUnit - 1
	// largerTries is how many of the larger suffixes are looked up in one statement.
	largerTries = 8
	// MinQuarantine is how long after an invoice's expiry its transfer
	// amounts are not assigned to another invoice: its payer may be late, or pay
	// twice.
	MinQuarantine = time.Hour
	// Quarantine is how long they are not assigned while other amounts are free.
	Quarantine = 24 * time.Hour
	// exhaustedTTL is how long an amount is cached as having no free suffix.
	exhaustedTTL = 5 * time.Second
	// MaxExhausted bounds the cache of such amounts.
	MaxExhausted = 4096
	// MaxShortlists bounds the number of amounts with a cached shortlist.
	MaxShortlists = 256
)

// suffixCache caches which suffixes of an amount are free, so that they are not all looked up for each
// invoice of a price. The transaction that uses an entry checks it. It is safe for concurrent use.
type suffixCache struct {
	now func() time.Time

	// mu guards the maps. Their keys are amounts without suffix.
	mu        sync.Mutex
	shortlist map[AmountKey][]choice  // amounts with a free suffix; the best is the last
	exhausted map[AmountKey]time.Time // until when no suffix is assumed to be free
}

// choice is a transfer amount that can be assigned.
type choice struct {
	amount invoice.Amount
	until  time.Time // last expiry of the closed invoices that had it, or zero
}

func newSuffixCache(now func() time.Time) *suffixCache {
	return &suffixCache{now: now, shortlist: make(map[AmountKey][]choice), exhausted: make(map[AmountKey]time.Time)}
}

// chooseAmounts returns a transfer amount for each base that no invoice of its address uses, or zero
// if no amount is free. try counts from 0 how often the returned amounts were already taken.
func (s *Service) chooseAmounts(ctx context.Context, tx *db.Tx, bases []AmountKey, try int) ([]invoice.Amount, error) {
	tried := make([]choice, len(bases))
	var keys []AmountKey
	for i, base := range bases {
		if try >= maxTries || s.suffixes.isExhausted(base) {
			continue
		}
		next, known := s.suffixes.next(base)
		if tried[i] = next; !known && try < randomTries {
			n, err := rand.Int(s.conf.Rand, big.NewInt(invoice.MaxSuffix))
			if err != nil {
				return nil, err
			}
			tried[i].amount, _ = suffixed(base, n.Uint64()+1)
		}
		keys = append(keys, base.With(tried[i].amount))
	}
	uses, err := amountUses(ctx, tx, keys)
	if err != nil {
		return nil, err
	}
	chosen := make([]invoice.Amount, len(bases))
	for i, base := range bases {
		c := tried[i]
		use := uses[base.With(c.amount)]
		switch {
		case !c.amount.IsZero() && !use.Taken && use.Until.Equal(c.until):
			chosen[i] = c.amount
		case try < maxTries && !s.suffixes.isExhausted(base):
			if chosen[i], err = s.chooseFree(ctx, tx, base); err != nil {
				return nil, err
			}
		}
	}
	return chosen, nil
}

// amountUses returns which invoices use the amounts. An amount is taken if its last invoice expired
// less than MinQuarantine before the newest final block of the chain. Every block that is read after
// that is younger, regardless of the service's clock and of how far behind the head it reads.
func amountUses(ctx context.Context, tx *db.Tx, keys []AmountKey) (map[AmountKey]AmountUse, error) {
	var chains []string
	for _, k := range keys {
		if !slices.Contains(chains, k.ChainKey) {
			chains = append(chains, k.ChainKey)
		}
	}
	times, err := sendFinalTimes(ctx, tx, chains)
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	uses, err := AmountUses(ctx, tx, keys, func() time.Time {
		oldest := times[chains[0]]
		for _, key := range chains {
			if times[key].Before(oldest) {
				oldest = times[key]
			}
		}
		return oldest.Add(-Quarantine)
	})
	for k, use := range uses {
		if !use.Until.Before(times[k.ChainKey].Add(-MinQuarantine)) {
			uses[k] = AmountUse{Taken: true, Until: use.Until}
		}
	}
	return uses, err
}

// chooseLarger sets amounts that are zero to one with a larger suffix, if one of
// a few random ones is free.
func (s *Service) chooseLarger(ctx context.Context, tx *db.Tx, bases []AmountKey, amounts []invoice.Amount) error {
	tried := make([][]AmountKey, len(bases))
	for i, base := range bases {
		for range largerTries {
			if !amounts[i].IsZero() {
				break
			}
			n, err := rand.Int(s.conf.Rand, big.NewInt(maxLargerSuffix-invoice.MaxSuffix))
			if err != nil {
				return err
			}
			if a, ok := suffixed(base, invoice.MaxSuffix+1+n.Uint64()); ok {
				tried[i] = append(tried[i], base.With(a))
			}
		}
	}
	uses, err := amountUses(ctx, tx, slices.Concat(tried...))
	for i := range bases {
		for _, k := range tried[i] {
			if uses[k] == (AmountUse{}) {
				amounts[i] = k.Amount
			}
		}
	}
	return err
}

// suffixed returns an amount with a suffix; ok is false when it overflows or is
// round.
func suffixed(base AmountKey, suffix uint64) (a invoice.Amount, ok bool) {
	a, ok = base.Amount.Add(invoice.NewAmount(suffix))
	if !ok || a.IsRound() {
		return invoice.Amount{}, false
	}
	return a, true
}

// chooseFree returns a random unused transfer amount. If all are used, it returns the one with the
// last invoice that expired longest ago, or zero if none may be reused. The other choices become the
// shortlist.
func (s *Service) chooseFree(ctx context.Context, tx *db.Tx, base AmountKey) (invoice.Amount, error) {
	var all []AmountKey
	for suffix := range uint64(invoice.MaxSuffix) {
		if a, ok := suffixed(base, suffix+1); ok {
			all = append(all, base.With(a))
		}
	}
	uses, err := amountUses(ctx, tx, all)
	if err != nil {
		return invoice.Amount{}, err
	}
	var choices []choice
	for _, k := range all {
		if use := uses[k]; !use.Taken {
			choices = append(choices, choice{k.Amount, use.Until})
		}
	}
	if len(choices) == 0 {
		s.suffixes.exhaust(base)
		return invoice.Amount{}, nil
	}
	var seed [32]byte
	if _, err := io.ReadFull(s.conf.Rand, seed[:]); err != nil {
		return invoice.Amount{}, err
	}
	random := mathrand.New(mathrand.NewChaCha8(seed)) //nolint:gosec // a seeded ChaCha8 is as random as its seed, which Config.Rand gave
	random.Shuffle(len(choices), func(i, j int) { choices[i], choices[j] = choices[j], choices[i] })
	slices.SortStableFunc(choices, func(a, b choice) int { return b.until.Compare(a.until) })
	best := len(choices) - 1
	s.suffixes.keep(base, choices[:best])
	return choices[best].amount, nil
}

// next removes the best choice from the amount's shortlist, if there is one.
func (f *suffixCache) next(base AmountKey) (choice, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.shortlist[base]
	if len(list) == 0 {
		return choice{}, false
	}
	last := len(list) - 1
	if f.shortlist[base] = list[:last]; last == 0 {
		delete(f.shortlist, base)
	}
	return list[last], true
}

// keep sets the amount's shortlist.
func (f *suffixCache) keep(base AmountKey, choices []choice) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.shortlist) >= MaxShortlists {
		clear(f.shortlist)
	}
	f.shortlist[base] = choices
}

func (f *suffixCache) isExhausted(base AmountKey) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	until, ok := f.exhausted[base]
	return ok && f.now().Before(until)
}

func (f *suffixCache) exhaust(base AmountKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.exhausted) > MaxExhausted {
		clear(f.exhausted)
	}
	f.exhausted[base] = f.now().Add(exhaustedTTL)
}
