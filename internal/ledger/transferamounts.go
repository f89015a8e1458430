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
	// drawTries is how many suffixes are drawn for an invoice until one differs from the others of its batch.
	drawTries = 16
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
	// MinQuarantine is how long after an invoice's expiry its transfer amounts are not assigned to another invoice: its
	// payer may be late, or pay twice.
	MinQuarantine = time.Hour
	// Quarantine is how long they are not assigned while other amounts are free.
	Quarantine = 24 * time.Hour
	// exhaustedTTL is how long no amount of a price is assumed to be free after a lookup found none.
	exhaustedTTL = 5 * time.Second
	// MaxShortlists bounds the number of prices of which the free amounts are cached.
	MaxShortlists = 256
)

// chooseAmounts returns a different transfer amount for each base, which no invoice of its address uses, or zero if no
// amount is free. try counts from 0 how often the returned amounts were already taken.
func (s *Service) chooseAmounts(ctx context.Context, tx *db.Tx, bases []AmountKey, try int) ([]invoice.Amount, error) {
	amounts := make([]invoice.Amount, len(bases))
	if try >= maxTries {
		return amounts, nil
	}
	tried, err := s.draw(bases, try)
	if err != nil {
		return nil, err
	}
	keys := make([]AmountKey, len(bases))
	var wanted []AmountKey
	for i, base := range bases {
		if keys[i] = base.With(tried[i].amount); !tried[i].amount.IsZero() {
			wanted = append(wanted, keys[i])
		}
	}
	uses, err := amountUses(ctx, tx, wanted)
	if err != nil {
		return nil, err
	}
	chosen := make(map[AmountKey]bool)
	var crowded []AmountKey // bases for which the tried amount is used
	for i, base := range bases {
		switch {
		case tried[i].none:
		case tried[i].isFree(uses[keys[i]]):
			amounts[i], chosen[keys[i]] = tried[i].amount, true
		case !slices.Contains(crowded, base):
			crowded = append(crowded, base)
		}
	}
	if len(crowded) == 0 {
		return amounts, nil
	}
	free, err := s.findFree(ctx, tx, crowded)
	if err != nil {
		return nil, err
	}
	for i, base := range bases {
		if amounts[i].IsZero() {
			amounts[i], free[base] = firstExcept(chosen, base, free[base])
			chosen[base.With(amounts[i])] = true
		}
	}
	s.suffixes.keepRest(free)
	return amounts, nil
}

// firstExcept returns the first amount that was not chosen, or zero, and the choices after it.
func firstExcept(chosen map[AmountKey]bool, base AmountKey, choices []choice) (invoice.Amount, []choice) {
	for i, c := range choices {
		if !chosen[base.With(c.amount)] {
			return c.amount, choices[i+1:]
		}
	}
	return invoice.Amount{}, nil
}

// draw returns a different transfer amount to try for each base: one that was free in a lookup, or else a random one.
func (s *Service) draw(bases []AmountKey, try int) ([]choice, error) {
	tried := make([]choice, len(bases))
	drawn := make(map[AmountKey]bool)
	for i, base := range bases {
		for range drawTries {
			c, known := s.suffixes.next(base)
			if !known && try < randomTries {
				n, err := rand.Int(s.conf.Rand, big.NewInt(invoice.MaxSuffix))
				if err != nil {
					return nil, err
				}
				c.amount, _ = suffixed(base, n.Uint64()+1)
			}
			if key := base.With(c.amount); c.none || !c.amount.IsZero() && !drawn[key] {
				tried[i], drawn[key] = c, true
				break
			}
		}
	}
	return tried, nil
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

// chooseLarger sets amounts that are zero to one with a larger suffix, if one of a few random ones is free.
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

// suffixed returns an amount with a suffix; ok is false when it overflows or is round.
func suffixed(base AmountKey, suffix uint64) (a invoice.Amount, ok bool) {
	a, ok = base.Amount.Add(invoice.NewAmount(suffix))
	if !ok || a.IsRound() {
		return invoice.Amount{}, false
	}
	return a, true
}

// findFree looks up the free transfer amounts of different bases. They are in random order, except that those with an
// invoice that expired less than Quarantine ago are the last, and of these the first is the one that expired longest
// ago.
func (s *Service) findFree(ctx context.Context, tx *db.Tx, bases []AmountKey) (map[AmountKey][]choice, error) {
	var seed [32]byte
	if _, err := io.ReadFull(s.conf.Rand, seed[:]); err != nil {
		return nil, err
	}
	random := mathrand.New(mathrand.NewChaCha8(seed)) //nolint:gosec // a seeded ChaCha8 is as random as its seed, which Config.Rand gave
	keys := make(map[AmountKey][]AmountKey)
	var all []AmountKey
	for _, base := range bases {
		for _, n := range random.Perm(invoice.MaxSuffix) {
			if a, ok := suffixed(base, uint64(n)+1); ok {
				keys[base] = append(keys[base], base.With(a))
			}
		}
		all = append(all, keys[base]...)
	}
	uses, err := amountUses(ctx, tx, all)
	if err != nil {
		return nil, err
	}
	free := make(map[AmountKey][]choice)
	for _, base := range bases {
		for _, k := range keys[base] {
			if use := uses[k]; !use.Taken {
				free[base] = append(free[base], choice{amount: k.Amount, until: use.Until})
			}
		}
		slices.SortStableFunc(free[base], func(a, b choice) int { return a.until.Compare(b.until) })
		if len(free[base]) == 0 {
			s.suffixes.keep(base, nil)
		}
	}
	return free, nil
}

// suffixCache holds free transfer amounts, so that they are not all looked up for each invoice of a crowded price. The
// transaction that uses one checks it. It is safe for concurrent use.
type suffixCache struct {
	now func() time.Time

	// mu guards the map. Its keys are amounts without suffix.
	mu   sync.Mutex
	free map[AmountKey]shortlist
}

// shortlist has free transfer amounts, the best one first. If it is empty, none is assumed to be free for exhaustedTTL.
type shortlist struct {
	choices []choice
	readAt  time.Time
}

// choice is a transfer amount that can be assigned.
type choice struct {
	amount invoice.Amount
	until  time.Time // last expiry of the closed invoices that had it, or zero
	none   bool      // no amount is free
}

// isFree reports whether a choice can be assigned, given the use of its amount.
func (c choice) isFree(use AmountUse) bool {
	return !c.amount.IsZero() && !use.Taken && use.Until.Equal(c.until)
}

// next removes and returns the best choice. known is false if it is not known which amounts are free.
func (f *suffixCache) next(base AmountKey) (c choice, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list, known := f.free[base]
	if known && len(list.choices) == 0 && f.now().Sub(list.readAt) < exhaustedTTL {
		return choice{none: true}, true
	}
	if len(list.choices) < 2 {
		delete(f.free, base)
	} else {
		f.free[base] = shortlist{list.choices[1:], list.readAt}
	}
	if len(list.choices) == 0 {
		return choice{}, false
	}
	return list.choices[0], true
}

// keepRest sets the choices of prices, except prices without choices left: others may be free soon.
func (f *suffixCache) keepRest(free map[AmountKey][]choice) {
	for base, choices := range free {
		if len(choices) > 0 {
			f.keep(base, choices)
		}
	}
}

// keep sets the choices of a price.
func (f *suffixCache) keep(base AmountKey, choices []choice) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.free) >= MaxShortlists {
		clear(f.free)
	}
	f.free[base] = shortlist{choices, f.now()}
}
