package ledger_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// scheduled gives the world's service a separate schedule's clock, and returns it.
func (w *world) scheduled() *atomic.Int64 {
	var at atomic.Int64
	at.Store(w.seconds.Load())
	w.Service = w.service(func(cfg *ledger.Config) {
		cfg.Schedule = func() time.Time { return time.Unix(at.Load(), 0) }
	})
	return &at
}

const lifetime = int64(invoice.RefundLifetime / time.Second)

// TestRefundsWhileTheClockIsAhead prepares two refunds of the same payment while the clock, or the schedule's, is ahead
// by hours. When the clock is right again, no more than one can be sent.
func TestRefundsWhileTheClockIsAhead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		now, scheduled int64 // while a clock is ahead, from the end of the refund
		stored         bool  // the expiry is stored then
		first          bool  // the first can be sent when the clock is back
	}{
		"the clock":                     {now: 3 * 3600, scheduled: -60, stored: true, first: true},
		"the schedule's":                {now: -60, scheduled: 5 * 3600, stored: true, first: true},
		"both, before anything expires": {now: 3 * 3600, scheduled: 5 * 3600, first: true},
		"both":                          {now: 3 * 3600, scheduled: 5 * 3600, stored: true},
	} {
		t.Run(name, func(t *testing.T) {
			eachWorldOnBoth(t, func(t *testing.T, w *world) {
				schedule := w.scheduled()
				p := w.paid(1000)
				first := w.mustPrepare(p, 0)
				end := w.seconds.Load() + lifetime
				w.seconds.Store(end + c.now)
				schedule.Store(end + c.scheduled)
				if c.stored {
					w.must(w.ExpireRefunds(t.Context()))
				}
				second, err := w.prepare(p, 0)
				if c.first {
					wantErr(t, "a second refund", err, ledger.ErrRefundExceeds)
				} else {
					w.must(err)
				}
				w.seconds.Store(end - 60)
				_, firstErr := w.SubmitRefund(w.as("maria"), first.ID, w.merchant, invoice.Hash{}, ledger.Once{})
				if (firstErr == nil) != c.first || firstErr != nil && !errors.Is(firstErr, ledger.ErrRefundNotOpen) {
					t.Errorf("the first is sent: %v", firstErr)
				}
				if !c.first {
					_, err := w.SubmitRefund(w.as("juan"), second.ID, w.merchant, invoice.Hash{}, ledger.Once{})
					w.must(err)
				}
			})
		})
	}
}

// TestTimesOfAServiceThatIsOffAtNight lets a refund expire and a key end while the schedule's clock is
// 60 days behind, because the service was off for that long.
func TestTimesOfAServiceThatIsOffAtNight(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.Service = w.service(func(cfg *ledger.Config) {
			cfg.Schedule = func() time.Time { return time.Unix(w.seconds.Load()-60*day, 0) }
			cfg.Confirmed = func() time.Time { return time.Unix(w.seconds.Load(), 0) }
		})
		request := ledger.CreateRequest{Once: ledger.Once{Key: "k"}, Draft: w.draft()}
		request.Draft.ExpiresAt = invoice.Unix(start + 40*day)
		invoiced, err := w.Create(t.Context(), request)
		w.must(err)
		p := w.paid(1000)
		w.mustPrepare(p, 0)
		w.seconds.Add(lifetime + 1)
		w.must(w.ExpireRefunds(t.Context()))
		if _, err := w.prepare(p, 0); err != nil {
			t.Errorf("after the first refund expired: %v", err)
		}
		w.must(w.DeleteOldKeys(t.Context()))
		if again, err := w.Create(t.Context(), request); err != nil || again.ID == invoiced.ID {
			t.Errorf("after a day the key gives %s, %v, want another invoice", again.ID, err)
		}
	})
}

// TestWithdrawalWhileTheClockIsAhead withdraws another person's submission, a moment after it began,
// while the clock is ahead by hours.
func TestWithdrawalWhileTheClockIsAhead(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		schedule := w.scheduled()
		r := w.mustPrepare(w.paid(1000), 0)
		_, err := w.SubmitRefund(w.as("maria"), r.ID, w.merchant, invoice.Hash{1}, ledger.Once{})
		w.must(err)
		w.seconds.Add(3 * 3600)
		schedule.Add(1)
		wantSubmitted(t, "withdrawn at once", w.withdraw(r.ID), "maria")
		schedule.Add(int64(invoice.SubmissionPatience / time.Second))
		w.must(w.withdraw(r.ID))
	})
}

// TestSubmissionSeenBeginsAnew finds a submission's transaction at a node: its 10 minutes start again,
// unless it has another transaction by now.
func TestSubmissionSeenBeginsAnew(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		schedule := w.scheduled()
		pass := func(seconds int64) {
			w.seconds.Add(seconds)
			schedule.Add(seconds)
		}
		const patience = int64(invoice.SubmissionPatience / time.Second)
		r := w.mustPrepare(w.paid(1000), 0)
		s, err := w.SubmitRefund(w.as("maria"), r.ID, w.merchant, invoice.Hash{1}, ledger.Once{})
		w.must(err)
		pass(patience)
		w.must(w.SubmissionSeen(t.Context(), r.ID, s.ID, w.merchant, invoice.Hash{1}))
		wantErr(t, "of another merchant", w.SubmissionSeen(t.Context(), r.ID, s.ID, "other", invoice.Hash{1}), db.ErrNotFound)
		pass(patience - 1)
		w.must(w.SubmissionSeen(t.Context(), r.ID, s.ID, w.merchant, invoice.Hash{2}))
		wantSubmitted(t, "a second too early", w.withdraw(r.ID), "maria")
		pass(1)
		w.must(w.withdraw(r.ID))
		w.must(w.SubmissionSeen(t.Context(), r.ID, s.ID, w.merchant, invoice.Hash{1}))
		if all, err := ledger.NewReader(w.db.store).Submissions(t.Context(), r.ID); err != nil || all[0].InForce() {
			t.Errorf("seen after it was withdrawn: %+v, %v", all, err)
		}
	})
}

// TestDroppedRefundWhileTheClockIsAhead drops the refund of an open invoice that no submission awaits
// any more. The refunded amount counts again once the patience is over by the schedule's clock.
func TestDroppedRefundWhileTheClockIsAhead(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		schedule := w.scheduled()
		inv := w.create()
		w.confirmed(w.payFor(inv, 400_000))
		back := w.back(invoice.NewAmount(400_000))
		w.mine(w.head().Time.Unix()+1, back)
		w.reorg(1)
		record, _ := w.storedRefund(back)
		all, err := ledger.NewReader(w.db.store).Submissions(t.Context(), record.ID)
		w.must(err)
		_, err = w.WithdrawSubmission(w.as("juan"), ledger.Withdrawal{RefundID: record.ID, SubmissionID: all[0].ID, Gone: all[0].TxHash, Failed: true})
		w.must(err)
		w.seconds.Add(3 * 3600)
		w.must(w.ExpireRefunds(t.Context()))
		w.wantDue(inv.ID, invoice.Open, 1_000_000)
		schedule.Add(int64(invoice.SubmissionPatience/time.Second) + 1)
		w.must(w.ExpireRefunds(t.Context()))
		w.wantDue(inv.ID, invoice.Open, 600_000)
	})
}
