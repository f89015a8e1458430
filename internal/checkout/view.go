package checkout

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// state is what the customer is told first. It is finer than the invoice's
// status: an open invoice may wait for money, have some of it, have all of it
// in blocks that are not final, or wait for the last blocks after its time.
type state string

const (
	waiting  state = "waiting"
	partial  state = "partial"
	seen     state = "seen"
	checking state = "checking"
	paid     state = "paid"
	expired  state = "expired"
	void     state = "void"
	draft    state = "draft"
)

// subject is all that the page is made from.
type subject struct {
	invoice  invoice.Invoice
	payments []invoice.Payment // the newest of them, MaxPayments at most, the newest first
	chain    chain.Chain
	token    chain.Token
	indexed  uint64 // number of the newest block that was read
	halted   bool   // the chain's indexer has stopped
	now      int64  // Unix seconds
}

// view is what the page says, apart from the time that is left. Amounts are in
// major units.
type view struct {
	ID        string
	Merchant  string
	Network   string
	Currency  string
	Amount    string
	Lines     []line
	ExpiresAt int64 // Unix seconds

	State    state
	Headline string
	Text     []string
	Steps    []step
	Progress *progress    // of the payment in the newest block, in state seen
	Pay      *instruction // nil when nothing should be sent
	Received []receipt
	More     int // payments that Received leaves out
	Record   []fact
}

// line is a line item.
type line struct{ Label, Amount string }

// step is a stage that a payment goes through.
type step struct {
	Label         string
	Done, Current bool
}

// progress is how many blocks confirm a payment, of how many that must. Need
// is 0 where the network itself says what is final.
type progress struct{ Have, Need uint64 }

// receipt is a payment that has arrived, or was thought to have.
type receipt struct {
	Amount string
	TxHash string
	From   string
	At     int64 // Unix seconds: the block's time
	Status invoice.PaymentStatus
	Late   bool
}

// fact is a term of the invoice, for readers who check it on the chain.
type fact struct{ Name, Value string }

// newView decides what the page says. It is a pure function.
func newView(s subject) view {
	inv := s.invoice
	v := view{
		ID:        inv.ID,
		Merchant:  inv.MerchantID,
		Network:   networkName(s.chain.Key),
		Currency:  inv.Currency,
		Amount:    s.major(inv.Amount),
		ExpiresAt: inv.ExpiresAt,
		State:     s.state(),
		Record:    s.record(),
	}
	for _, item := range inv.LineItems {
		v.Lines = append(v.Lines, line{item.Label, s.major(item.Amount)})
	}
	v.Received, v.More = s.received()
	v.Headline, v.Text = s.words(v.State)
	switch v.State {
	case waiting:
		v.Pay = s.payInFull()
		v.Steps = steps(0)
	case partial:
		v.Pay = s.payRest()
		v.Steps = steps(0)
	case seen:
		v.Progress = s.progress()
		v.Steps = steps(1)
	case paid:
		v.Steps = steps(len(stages))
	case checking, expired, void, draft:
	}
	return v
}

// state tells which words the invoice and its payments deserve.
func (s subject) state() state {
	switch s.invoice.Status {
	case invoice.Paid:
		return paid
	case invoice.Expired:
		return expired
	case invoice.Void:
		return void
	case invoice.Drafted:
		return draft
	case invoice.Open:
	}
	switch {
	case s.invoice.Covered():
		return seen
	case s.now > s.invoice.ExpiresAt:
		return checking
	case s.invoice.Partial():
		return partial
	}
	return waiting
}

// received lists the newest payments, and counts those left out.
func (s subject) received() (list []receipt, more int) {
	for _, p := range s.payments {
		list = append(list, receipt{
			Amount: s.major(p.Amount), TxHash: p.TxHash.String(), From: chain.Checksum(p.From),
			At: p.BlockTime, Status: p.Status, Late: p.BlockTime > s.invoice.ExpiresAt,
		})
	}
	return list, max(0, int(s.invoice.Sums.Payments)-len(s.payments))
}

// progress counts the blocks on the newest pending payment, its own included.
func (s subject) progress() *progress {
	var newest uint64
	for _, p := range s.payments {
		if p.Status == invoice.Pending {
			newest = max(newest, p.BlockNumber)
		}
	}
	return s.confirmations(newest)
}

// confirmations counts the blocks on a block, its own included; none on block 0.
func (s subject) confirmations(block uint64) *progress {
	var have uint64
	if block > 0 && s.indexed >= block {
		have = s.indexed - block + 1
	}
	if s.chain.Finality.Tag != "" {
		return &progress{Have: have}
	}
	need := s.chain.Finality.Depth + 1
	return &progress{Have: min(have, need), Need: need}
}

// stages are what a payment goes through when all goes well.
var stages = []string{"Waiting", "Seen", "Paid"}

// steps returns the stages with the first so many done.
func steps(done int) []step {
	list := make([]step, len(stages))
	for i, label := range stages {
		list[i] = step{Label: label, Done: i < done, Current: i == done}
	}
	return list
}

// major writes an amount of the invoice's currency for people.
func (s subject) major(a invoice.Amount) string { return a.Major(s.token.Decimals) }

// version changes when anything that the view says does.
func (v view) version() (string, error) {
	text, err := json.Marshal(v) //nolint:musttag // nobody reads it
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}
