package report

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

const (
	// RollupDelay is how old a period must be to be added up. If a replica with a slow clock later
	// confirms a payment in an older period, that period is added up again; the delay makes that rare.
	RollupDelay = 10 * time.Minute
	// rollupPage is how many payments or refunds are read in one statement, and about how many one
	// transaction adds up.
	rollupPage = 2000
	// staleBatch bounds the stale periods that one transaction adds up.
	staleBatch = 20
	// checkedPeriod is how far back rollups are checked. It is no less than the period of a
	// summary.
	checkedPeriod = 100 * 24 * time.Hour
)

// Updater runs transactions; a db.DB is one.
type Updater interface {
	Update(ctx context.Context, fn func(*db.Tx) error) error
}

// Rollups adds up settled amounts by quarters of an hour, so that Days is fast. A period is added up
// when it is over, and again when a payment or refund is added to it. Several processes may do so;
// they take turns.
type Rollups struct {
	store   Updater
	now     func() time.Time
	logger  *slog.Logger
	checked time.Time // where the next check begins
}

// NewRollups returns a Rollups.
func NewRollups(s Updater, now func() time.Time, logger *slog.Logger) *Rollups {
	return &Rollups{store: s, now: now, logger: logger}
}

// Advance adds up some periods, and reports whether there are more. Without any, it checks some
// earlier ones, and corrects differences.
func (r *Rollups) Advance(ctx context.Context) (more bool, err error) {
	var a advance
	err = r.store.Update(ctx, func(tx *db.Tx) error {
		a, err = r.advance(ctx, tx)
		return err
	})
	if err != nil {
		return false, err
	}
	if !a.to.IsZero() {
		r.checked = a.to
	}
	if a.corrected {
		r.logger.WarnContext(ctx, "rollups differed from payments, corrected", "from", a.from, "to", a.to)
	}
	return a.more, nil
}

// advance is the result of a transaction.
type advance struct {
	more      bool
	from, to  time.Time // the checked period; zero without one
	corrected bool
}

func (r *Rollups) advance(ctx context.Context, tx *db.Tx) (advance, error) {
	closed := ledger.RollupStart(r.now().Add(-RollupDelay))
	through, err := lockRollups(ctx, tx, closed)
	if err != nil {
		return advance{}, fmt.Errorf("lock rollups: %w", err)
	}
	stale, err := TakeStaleRollups(ctx, tx, staleBatch)
	if err != nil {
		return advance{}, fmt.Errorf("take stale rollups: %w", err)
	}
	if err := replaceStale(ctx, tx, stale, through); err != nil {
		return advance{}, err
	}
	more := len(stale) == staleBatch
	if !through.Before(closed) {
		if len(stale) == 0 {
			return r.check(ctx, tx, through)
		}
		return advance{more: more}, nil
	}
	to, err := window(ctx, tx, through, closed)
	if err != nil {
		return advance{}, err
	}
	if _, err := replaceRollups(ctx, tx, through, to); err != nil {
		return advance{}, err
	}
	if err := addDays(ctx, tx, dayStart(through), dayStart(to)); err != nil {
		return advance{}, err
	}
	return advance{more: more || to.Before(closed)}, setRollupsThrough(ctx, tx, to)
}

// replaceStale adds up stale periods before a time, and the days that change.
func replaceStale(ctx context.Context, tx *db.Tx, stale []time.Time, through time.Time) error {
	var days []time.Time
	for _, start := range stale {
		if !start.Before(through) {
			break
		}
		changed, err := replaceRollups(ctx, tx, start, start.Add(ledger.RollupPeriod))
		if err != nil {
			return err
		}
		if day := dayStart(start); changed && day.Before(dayStart(through)) {
			days = append(days, day)
		}
	}
	for _, day := range slices.CompactFunc(days, time.Time.Equal) {
		if err := addDays(ctx, tx, day, day.Add(Day)); err != nil {
			return err
		}
	}
	return nil
}

// addDays adds up the rollups of the days from a time on and before another one. All days before the
// progress are added up.
func addDays(ctx context.Context, tx *db.Tx, from, to time.Time) error {
	if !from.Before(to) {
		return nil
	}
	rollups, err := RollupsBetween(ctx, tx, from, to)
	if err != nil {
		return fmt.Errorf("read rollups: %w", err)
	}
	lines := make(map[rollupKey]*Line)
	for _, r := range rollups {
		key := keyOf(r)
		key.start = dayStart(r.Start)
		if lines[key] == nil {
			lines[key] = new(Line)
		}
		if err := lines[key].addRollup(r); err != nil {
			return err
		}
	}
	if err := replaceDays(ctx, tx, from, to, rollupsOf(lines)); err != nil {
		return fmt.Errorf("replace days: %w", err)
	}
	return nil
}

// rollupsOf returns lines as rollups, in order.
func rollupsOf(lines map[rollupKey]*Line) []Rollup {
	rollups := make([]Rollup, 0, len(lines))
	for _, key := range slices.SortedFunc(maps.Keys(lines), rollupKey.compare) {
		l := lines[key]
		rollups = append(rollups, Rollup{
			MerchantID: key.merchantID, Start: key.start, ChainKey: key.chainKey, Currency: key.currency,
			Payments: l.Payments, Refunds: l.Refunds, Gross: l.Gross.String(), Refunded: l.Refunded.String(),
		})
	}
	return rollups
}

// check adds up some periods once more. A difference in periods that another transaction has marked as
// stale since is no fault.
func (r *Rollups) check(ctx context.Context, tx *db.Tx, through time.Time) (advance, error) {
	from := r.checked
	if first := ledger.RollupStart(through.Add(-checkedPeriod)); from.Before(first) || !from.Before(through) {
		from = first
	}
	to, err := window(ctx, tx, from, through)
	if err != nil {
		return advance{}, err
	}
	changed, err := replaceRollups(ctx, tx, from, to)
	var stale []time.Time
	if changed {
		if stale, err = NewReader(tx).StaleRollups(ctx, from, to, 1); err != nil {
			return advance{}, err
		}
		if err := addDays(ctx, tx, dayStart(from), clock.Earlier(dayStart(to.Add(Day)), dayStart(through))); err != nil {
			return advance{}, err
		}
	}
	return advance{from: from, to: to, corrected: changed && len(stale) == 0}, err
}

// window returns the end of the periods from a time on that have about rollupPage payments and
// as many refunds, at least one period, and at most those before end.
func window(ctx context.Context, tx *db.Tx, from, end time.Time) (time.Time, error) {
	f := ReportFilter{From: from, To: end, Limit: rollupPage}
	payments, err := NewReader(tx).SettledAmounts(ctx, f)
	if err != nil {
		return time.Time{}, fmt.Errorf("read payments: %w", err)
	}
	if len(payments) == f.Limit {
		end = ledger.RollupStart(payments[len(payments)-1].ConfirmedAt)
	}
	refunds, err := NewReader(tx).ReportedRefunds(ctx, f)
	if err != nil {
		return time.Time{}, fmt.Errorf("read refunds: %w", err)
	}
	if len(refunds) == f.Limit {
		if at := ledger.RollupStart(refunds[len(refunds)-1].ConfirmedAt); at.Before(end) {
			end = at
		}
	}
	if first := from.Add(ledger.RollupPeriod); end.Before(first) {
		end = first
	}
	return end, nil
}

// replaceRollups adds up the periods from a time on and before another one, and reports whether a sum
// has changed.
func replaceRollups(ctx context.Context, tx *db.Tx, from, to time.Time) (changed bool, err error) {
	lines := make(map[rollupKey]*Line)
	add := func(at time.Time, merchantID, chainKey, currency string, change func(*Line)) {
		for _, id := range []string{merchantID, ""} {
			key := rollupKey{id, ledger.RollupStart(at), chainKey, currency}
			if lines[key] == nil {
				lines[key] = new(Line)
			}
			change(lines[key])
		}
	}
	f := ReportFilter{From: from, To: to, Limit: rollupPage}
	if err := eachSettled(ctx, NewReader(tx), f, func(p SettledAmount) {
		add(p.ConfirmedAt, p.MerchantID, p.ChainKey, p.Currency, func(l *Line) { l.addPayment(p.Amount, invoice.Portion{}) })
	}); err != nil {
		return false, err
	}
	if err := eachRefund(ctx, NewReader(tx), f, func(r invoice.Refund) {
		add(r.ConfirmedAt, r.MerchantID, r.ChainKey, r.Currency, func(l *Line) { l.addRefund(r.Amount) })
	}); err != nil {
		return false, err
	}
	rollups := rollupsOf(lines)
	stored, err := RollupsBetween(ctx, tx, from, to)
	if err != nil {
		return false, fmt.Errorf("read rollups: %w", err)
	}
	slices.SortFunc(stored, func(a, b Rollup) int { return keyOf(a).compare(keyOf(b)) }) // databases collate texts differently
	if slices.Equal(stored, rollups) {
		return false, nil
	}
	if err := ReplaceRollups(ctx, tx, from, to, rollups); err != nil {
		return false, fmt.Errorf("replace rollups: %w", err)
	}
	return true, nil
}

// rollupKey identifies a rollup.
type rollupKey struct {
	merchantID         string
	start              time.Time
	chainKey, currency string
}

func keyOf(r Rollup) rollupKey {
	return rollupKey{r.MerchantID, r.Start, r.ChainKey, r.Currency}
}

func (k rollupKey) compare(other rollupKey) int {
	return cmp.Or(strings.Compare(k.merchantID, other.merchantID), k.start.Compare(other.start), strings.Compare(k.chainKey, other.chainKey), strings.Compare(k.currency, other.currency))
}
