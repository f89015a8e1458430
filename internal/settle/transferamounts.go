package settle

import (
	"cmp"
	"context"
	"crypto/rand"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

const (
	// blindTries is how often a random suffix is tried before all that are free
	// are looked for.
	blindTries = 3
	// knowingTries is how often one of those that are free is tried: others
	// may take it first.
	knowingTries = 3
	// largerSuffix is the largest suffix of a remainder of which none up to
	// MaxSuffix is free: what it adds to the remainder stays below a cent.
	largerSuffix = invoice.RoundUnit - 1
	// largerTries is how many of the larger suffixes are looked up at once.
	largerTries = 8
	// MinQuarantine is how long after an invoice's expiry, in seconds, no other
	// invoice is given an amount that was told for it: its payer may be late, or
	// pay twice.
	MinQuarantine = 60 * 60
	// Quarantine is how long that is so while there are other amounts.
	Quarantine = 24 * 60 * 60
	// exhaustedFor is how long it is believed that no suffix of an amount is
	// free.
	exhaustedFor = 5 * time.Second
	// exhaustedLimit bounds how many such amounts are remembered.
	exhaustedLimit = 4096
	// shortlistLimit bounds for how many amounts a shortlist is kept.
	shortlistLimit = 256
)

// suffixes remembers which suffixes of an amount are free, so that they are
// not all looked up for each invoice of a price. What it remembers is checked
// in the transaction that uses it. It is safe for concurrent use.
type suffixes struct {
	now func() time.Time

	mu        sync.Mutex
	shortlist map[store.AmountKey][]choice  // by amount without suffix; the best choice is the last
	exhausted map[store.AmountKey]time.Time // amounts of which no suffix is free, and until when that is believed
}

// choice is an amount that can be told, and until when it named a closed
// invoice, in Unix seconds; 0 when it means nothing.
type choice struct {
	amount invoice.Amount
	until  int64
}

func newSuffixes(now func() time.Time) *suffixes {
	return &suffixes{now: now, shortlist: make(map[store.AmountKey][]choice), exhausted: make(map[store.AmountKey]time.Time)}
}

// chooseAmounts returns an amount to tell for each base, with a suffix that
// means nothing at its address; zero where none is free. try counts from 0 how
// often amounts that were returned turned out to be taken.
func (s *Service) chooseAmounts(ctx context.Context, tx *store.Tx, bases []store.AmountKey, try int) ([]invoice.Amount, error) {
	tried := make([]choice, len(bases))
	var keys []store.AmountKey
	for i, base := range bases {
		if try >= blindTries+knowingTries || s.suffixes.isExhausted(base) {
			continue
		}
		next, known := s.suffixes.next(base)
		if tried[i] = next; !known && try < blindTries {
			n, err := rand.Int(s.Rand, big.NewInt(invoice.MaxSuffix))
			if err != nil {
				return nil, err
			}
			tried[i].amount, _ = suffixed(base, n.Uint64()+1)
		}
		keys = append(keys, base.With(tried[i].amount))
	}
	uses, err := s.amountUses(ctx, tx, keys)
	if err != nil {
		return nil, err
	}
	told := make([]invoice.Amount, len(bases))
	for i, base := range bases {
		c := tried[i]
		use := uses[base.With(c.amount)]
		switch {
		case !c.amount.IsZero() && use == store.AmountUse{Until: c.until}:
			told[i] = c.amount
		case try < blindTries+knowingTries && !s.suffixes.isExhausted(base):
			if told[i], err = s.chooseFree(ctx, tx, base); err != nil {
				return nil, err
			}
		}
	}
	return told, nil
}

// amountUses returns what the amounts mean. One whose last invoice expired less
// than MinQuarantine ago is taken.
func (s *Service) amountUses(ctx context.Context, tx *store.Tx, keys []store.AmountKey) (map[store.AmountKey]store.AmountUse, error) {
	now := s.Now().Unix()
	uses, err := tx.AmountUses(ctx, keys, now-Quarantine)
	for k, use := range uses {
		if use.Until >= now-MinQuarantine {
			uses[k] = store.AmountUse{Taken: true, Until: use.Until}
		}
	}
	return uses, err
}

// chooseLarger sets, where an amount is zero, one with a larger suffix that means
// nothing at its address, if one of a few that it looks up does.
func (s *Service) chooseLarger(ctx context.Context, tx *store.Tx, bases []store.AmountKey, amounts []invoice.Amount) error {
	tried := make([][]store.AmountKey, len(bases))
	for i, base := range bases {
		for range largerTries {
			if !amounts[i].IsZero() {
				break
			}
			n, err := rand.Int(s.Rand, big.NewInt(largerSuffix-invoice.MaxSuffix))
			if err != nil {
				return err
			}
			if a, ok := suffixed(base, invoice.MaxSuffix+1+n.Uint64()); ok {
				tried[i] = append(tried[i], base.With(a))
			}
		}
	}
	uses, err := s.amountUses(ctx, tx, slices.Concat(tried...))
	for i := range bases {
		for _, k := range tried[i] {
			if uses[k] == (store.AmountUse{}) {
				amounts[i] = k.Amount
			}
		}
	}
	return err
}

// suffixed returns an amount with a suffix; ok is false when that is no amount,
// or none that may be told.
func suffixed(base store.AmountKey, suffix uint64) (a invoice.Amount, ok bool) {
	a, ok = base.Amount.Add(invoice.NewAmount(suffix))
	if !ok || a.IsRound() {
		return invoice.Amount{}, false
	}
	return a, true
}

// chooseFree returns one of the amounts that mean nothing, at random; if there
// is none, the one whose last invoice expired longest ago; if all are taken,
// zero. The others are the shortlist of the next choices.
func (s *Service) chooseFree(ctx context.Context, tx *store.Tx, base store.AmountKey) (invoice.Amount, error) {
	var all []store.AmountKey
	for suffix := range uint64(invoice.MaxSuffix) {
		if a, ok := suffixed(base, suffix+1); ok {
			all = append(all, base.With(a))
		}
	}
	uses, err := s.amountUses(ctx, tx, all)
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
	if _, err := io.ReadFull(s.Rand, seed[:]); err != nil {
		return invoice.Amount{}, err
	}
	random := mathrand.New(mathrand.NewChaCha8(seed)) //nolint:gosec // a seeded ChaCha8 is as random as its seed, which s.Rand gave
	random.Shuffle(len(choices), func(i, j int) { choices[i], choices[j] = choices[j], choices[i] })
	slices.SortStableFunc(choices, func(a, b choice) int { return cmp.Compare(b.until, a.until) })
	best := len(choices) - 1
	s.suffixes.keep(base, choices[:best])
	return choices[best].amount, nil
}

// next takes the best choice from the amount's shortlist, if there is one.
func (f *suffixes) next(base store.AmountKey) (choice, bool) {
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

// keep makes the choices the amount's shortlist.
func (f *suffixes) keep(base store.AmountKey, choices []choice) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.shortlist) >= shortlistLimit {
		clear(f.shortlist)
	}
	f.shortlist[base] = choices
}

func (f *suffixes) isExhausted(base store.AmountKey) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	until, ok := f.exhausted[base]
	return ok && f.now().Before(until)
}

func (f *suffixes) exhaust(base store.AmountKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.exhausted) > exhaustedLimit {
		clear(f.exhausted)
	}
	f.exhausted[base] = f.now().Add(exhaustedFor)
}
