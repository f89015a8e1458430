package checkout

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/web/checkout/locale"
)

// statusData is the JSON that shows open pages that they have changed.
type statusData struct {
	State state `json:"state"`
	// Version changes with the content of the page, but not with Left and Confirmations.
	Version string `json:"version"`
	Left    int64  `json:"left"`    // seconds until the invoice expires, or 0
	Refresh int64  `json:"refresh"` // seconds until the next poll
	// Confirmations is of the newest pending payment, in state seen.
	Confirmations *progress `json:"confirmations,omitempty"`
}

// status answers with the statusData of an invoice.
func (c *Checkout) status(w http.ResponseWriter, r *http.Request) error {
	now, err := c.currentStatus(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	c.Write(w, r, http.StatusOK, "application/json", now.json(c.conf.Now()))
	return nil
}

// pageStatus is the status of a page, with the facts that decide when it has to be read again.
type pageStatus struct { //nolint:recvcheck // only confirm changes it
	statusData
	chainKey   string
	merchantID string
	open       bool // the invoice is open
	// hasPayments reports whether the invoice is open and has payments, or one of them is pending or held.
	hasPayments bool
	expiresAt   time.Time // zero unless the page counts down
	changesAt   time.Time // last second before the clock changes the page; zero if it does not
	indexed     uint64    // the chain's newest block, up to which Confirmations counts
	confirmed   uint64    // the chain's newest final block
	blind       bool      // the chain was
	unmatched   unmatched
	// oldestPending and newestPending are blocks of pending payments, 0 without one.
	oldestPending, newestPending uint64
}

// currentStatus reads the status of an invoice's page.
func (c *Checkout) currentStatus(ctx context.Context, id string) (pageStatus, error) {
	s, err := c.load(ctx, id)
	if err != nil {
		return pageStatus{}, err
	}
	return s.status()
}

// status returns the status of the page, which is the same in all languages.
func (s pageInput) status() (pageStatus, error) {
	v := newView(s.in(locale.English()))
	version, err := v.version()
	if err != nil {
		return pageStatus{}, fmt.Errorf("encode the view: %w", err)
	}
	status := pageStatus{
		statusData: statusData{State: v.State, Version: version, Refresh: seconds(RefreshFinal)},
		chainKey:   s.chain.Key, merchantID: s.invoice.MerchantID, open: s.invoice.Status == invoice.Open,
		indexed: s.following.indexed.Number, confirmed: s.following.confirmed.Number, blind: s.following.isBlind(s.now),
	}
	if !v.Unmatched {
		status.unmatched = s.unmatched()
	}
	status.oldestPending, status.newestPending = s.pendingBlocks()
	status.hasPayments = status.open && len(s.payments) > 0 || status.oldestPending > 0
	if !s.isFinal() {
		status.Refresh = seconds(RefreshOpen)
	}
	if v.Progress != nil {
		status.Confirmations = s.following.confirmations(s.chain.Finality, status.newestPending)
	}
	if v.State == unknown && !status.blind {
		status.changesAt = s.awaited
	}
	if v.Pay != nil {
		status.expiresAt, status.changesAt = s.invoice.ExpiresAt, s.invoice.ExpiresAt
		status.Left = secondsLeft(status.expiresAt, s.now)
	}
	return status, nil
}

// isFinal reports whether only late payments and refunds can still change the page.
func (s pageInput) isFinal() bool {
	return s.invoice.Status != invoice.Open && s.invoice.Status != invoice.Drafted
}

// secondsLeft returns the seconds until the time to pay is over. The last second counts.
func secondsLeft(expiresAt, now time.Time) int64 {
	return max(0, int64(expiresAt.Sub(now.Truncate(time.Second))/time.Second)+1)
}

// json returns the status at a time.
func (s pageStatus) json(now time.Time) []byte {
	if !s.expiresAt.IsZero() {
		s.Left = secondsLeft(s.expiresAt, now)
	}
	text, err := json.Marshal(s.statusData)
	if err != nil {
		panic(err) // texts and numbers
	}
	return text
}

// same reports whether pages show the same with both statuses.
func (s pageStatus) same(t pageStatus) bool {
	if (s.Confirmations == nil) != (t.Confirmations == nil) || s.Confirmations != nil && *s.Confirmations != *t.Confirmations {
		return false
	}
	return s.State == t.State && s.Version == t.Version && s.expiresAt.Equal(t.expiresAt)
}

// isOver reports whether the clock has changed the page.
func (s pageStatus) isOver(now time.Time) bool {
	return !s.changesAt.IsZero() && now.Truncate(time.Second).After(s.changesAt)
}

// isOutdated reports whether the page has to be read again because of its chain: an open invoice's
// payments can no longer be seen, or can again; a reorg may have dropped a payment; a pending payment
// is final; a payment has arrived that may be meant for the invoice; or a block may contain a payment
// again that a reorg has dropped. The last two make no event.
func (s pageStatus) isOutdated(chain look, now time.Time) bool {
	if s.open && s.blind != chain.isBlind(now) {
		return true
	}
	if s.State == unknown && !s.blind && chain.indexed.Number > s.indexed || slices.ContainsFunc(chain.unattributed, s.unmatched.has) {
		return true
	}
	isNewlyFinal := func(block uint64) bool { return s.confirmed < block && block <= chain.confirmed.Number }
	return s.oldestPending > 0 && chain.reorged || isNewlyFinal(s.oldestPending) || isNewlyFinal(s.newestPending)
}

// confirm updates the confirmations after newer blocks, and reports whether they changed.
func (s *pageStatus) confirm(finality chain.Finality, f following) bool {
	if s.Confirmations == nil || f.indexed.Number <= s.indexed {
		return false
	}
	s.indexed = f.indexed.Number
	was, now := *s.Confirmations, f.confirmations(finality, s.newestPending)
	s.Confirmations = now
	return was != *now
}

// version returns a hash of the view. It leaves out parts that change with every block.
func (v view) version() (string, error) {
	v.Progress = nil
	text, err := json.Marshal(v) //nolint:musttag // the text is only hashed
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

// BlindAfter is the age of the last proof that a chain's newest blocks are read after which pages show
// that payments cannot be seen.
const BlindAfter = time.Minute

// Progress is the last results of the indexer of a chain in this process.
type Progress struct {
	Synced     time.Time // end of the last successful sync; zero before it
	CatchingUp bool      // it is far behind the finalized height
}

// following is how far a chain is read.
type following struct {
	Progress

	indexed, confirmed invoice.Header
	revision           int64 // see ledger.Cursor
	halted             bool
}

// follow reads how far a chain is read.
func (c *Checkout) follow(ctx context.Context, chainKey string) (following, error) {
	cursor, err := c.conf.Reader.Cursor(ctx, chainKey)
	if err != nil && !errors.Is(err, db.ErrNotFound) { // the chain was never read
		return following{}, fmt.Errorf("read cursor of %s: %w", chainKey, err)
	}
	return following{
		Progress: c.conf.Progress(chainKey), indexed: cursor.Indexed, confirmed: cursor.Confirmed, revision: cursor.Revision, halted: cursor.Halted != "",
	}, nil
}

// isBlind reports whether a payment that was just made may not be seen: the chain is halted, or there is no proof
// within BlindAfter that its newest blocks are read. A recent block is a proof, whichever process read it. On a chain
// that pauses, a recent sync of this process's indexer is a proof, unless it reads old blocks.
func (f following) isBlind(now time.Time) bool {
	recent := func(t time.Time) bool { return now.Sub(t).Abs() <= BlindAfter }
	return f.halted || !recent(f.indexed.Time) && (f.CatchingUp || !recent(f.Synced))
}

// usualTimes are the times until a block is final that pages may show.
var usualTimes = []time.Duration{
	5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 3 * time.Minute,
	5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 20 * time.Minute, 30 * time.Minute, time.Hour,
}

// usualTime returns how long blocks of the chain usually take to become final: the difference in age of the newest
// final block and the newest block, rounded up. It is 0 if that is unusually long, or unknown.
func (f following) usualTime() time.Duration {
	took := f.indexed.Time.Sub(f.confirmed.Time)
	for _, t := range usualTimes {
		if took <= t {
			return t
		}
	}
	return 0
}

// maxUnmatched bounds the payments without an invoice that a page looks at, newest first.
const maxUnmatched = 20

// unmatched describes the payments of a wrong amount that may be meant for an invoice. The zero value describes none.
type unmatched struct {
	to, token invoice.Address
	chainKey  string
	after     uint64         // the newest block that was read when the invoice was created
	due       invoice.Amount // what the page asks for
}

// unmatched returns the payments that may be meant for the invoice. At a deposit address every amount is attributed.
func (s pageInput) unmatched() unmatched {
	u := unmatched{to: s.invoice.Merchant, token: s.invoice.Token, chainKey: s.invoice.ChainKey, after: s.invoice.FromBlock}
	switch st := s.state(); {
	case s.invoice.IsDeposit():
	case st == waiting:
		u.due = s.invoice.Amount
	case st == partial:
		u.due = s.rest()
	}
	return u
}

// has reports whether an unattributed payment may be meant for the invoice: it differs from what is
// due by at most a half.
func (u unmatched) has(p invoice.Payment) bool {
	difference := p.Amount.Minus(u.due).Plus(u.due.Minus(p.Amount))
	return p.To == u.to && p.Token == u.token && p.ChainKey == u.chainKey && p.BlockNumber > u.after &&
		p.Status != invoice.Orphaned && !u.due.Less(difference.Plus(difference))
}
