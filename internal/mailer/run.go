package mailer

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
)

// Run sends due mails until ctx ends. It finishes attempts in progress.
func (m *Mailer) Run(ctx context.Context) {
	ended, sending := make(chan leased), inFlight{merchants: make(map[string]int)}
	for {
		began, err := m.begin(ctx, &sending, ended)
		if err != nil && ctx.Err() == nil {
			m.conf.Logger.Error("lease of mails failed, will retry", "err", err)
		}
		if ctx.Err() != nil {
			break
		}
		if !began {
			wait(ctx, m.wake, ended, &sending)
		}
	}
	for sending.all() > 0 {
		sending.add(<-ended, -1)
	}
}

// wait waits for a mail that may be due, or for the end of an attempt.
func wait(ctx context.Context, wake <-chan struct{}, ended <-chan leased, sending *inFlight) {
	timer := time.NewTimer(pollInterval)
	defer timer.Stop()
	select {
	case f := <-ended:
		sending.add(f, -1)
	case <-wake:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// begin begins to send a due mail, and reports whether there was one.
func (m *Mailer) begin(ctx context.Context, sending *inFlight, ended chan<- leased) (bool, error) {
	for _, lane := range sending.turns() {
		now := m.conf.Schedule()
		until := now.Add(leaseTime)
		mail, err := m.conf.Store.LeaseMail(ctx, LeaseRequest{
			Lane: lane, Wall: m.conf.Now(), Now: now, Until: until, After: sending.last[lane], Full: sending.full(),
		})
		if errors.Is(err, db.ErrNotFound) {
			continue
		} else if err != nil {
			return false, err
		}
		f := leased{lane, mail.MerchantID}
		sending.add(f, 1)
		sending.last[lane] = mail.MerchantID
		go func() {
			m.attempt(ctx, mail, until)
			ended <- f
		}()
		return true, nil
	}
	return false, nil
}

// leased is a mail that is being sent.
type leased struct {
	lane     Lane
	merchant string
}

// inFlight counts the mails that are being sent.
type inFlight struct {
	lanes     [len(waiting)]int
	merchants map[string]int
	last      [len(waiting)]string // the merchant that had the last turn
}

// add changes the number of mails.
func (i *inFlight) add(f leased, n int) {
	i.lanes[f.lane] += n
	if i.merchants[f.merchant] += n; i.merchants[f.merchant] == 0 {
		delete(i.merchants, f.merchant)
	}
}

func (i *inFlight) all() int { return i.lanes[Asked] + i.lanes[Reminders] + i.lanes[Retries] }

// turns returns the lanes that may send another mail. The lane with the fewest in flight goes first, so that each
// always gets a turn. One place is only for mails that somebody asked for.
func (i *inFlight) turns() []Lane {
	if i.all() >= MaxInFlight {
		return nil
	}
	lanes := []Lane{Asked, Reminders, Retries}
	if i.lanes[Reminders]+i.lanes[Retries] >= MaxInFlight-1 {
		return lanes[:1]
	}
	slices.SortStableFunc(lanes, func(a, b Lane) int { return i.lanes[a] - i.lanes[b] })
	return lanes
}

// full returns the merchants with MaxInFlightOfMerchant mails.
func (i *inFlight) full() (all [MaxInFlight / MaxInFlightOfMerchant]string) {
	n := 0
	for merchant, count := range i.merchants {
		if count >= MaxInFlightOfMerchant {
			all[n] = merchant
			n++
		}
	}
	return all
}

// record stores the outcome of an attempt. It repeats that until shortly before the lease ends or, if ctx ends, once.
func (m *Mailer) record(ctx context.Context, until time.Time, store func(ctx context.Context) error) error {
	for pause := firstStorePause; ; pause *= 2 {
		active := ctx.Err() == nil
		try, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		err := store(try)
		cancel()
		if err == nil || errors.Is(err, db.ErrConflict) || !active || m.conf.Schedule().Add(pause+storeTimeout).After(until) {
			return err
		}
		m.conf.Logger.WarnContext(ctx, "outcome of a mail not recorded, will retry", "err", err)
		clock.Sleep(ctx, pause, nil)
	}
}
