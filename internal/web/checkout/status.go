package checkout

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/chain"
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
