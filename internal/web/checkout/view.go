package checkout

import (
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/web/checkout/locale"
)

// state is the state that the page shows. It is finer than the invoice's status: an open invoice may be unpaid, partly
// paid, paid but not confirmed, past its expiry but with blocks left to index, or held for a person after a recovery.
type state string

const (
	waiting  state = "waiting"
	partial  state = "partial"
	seen     state = "seen"
	unknown  state = "unknown" // payments cannot be seen at the moment, or one is about to be mined again
	checking state = "checking"
	paid     state = "paid"
	refunded state = "refunded" // all that has arrived was sent back
	expired  state = "expired"
	void     state = "void"
	draft    state = "draft"
)

// pageInput is the input of newView.
type pageInput struct {
	text      *locale.Text
	invoice   invoice.Invoice
	profile   invoice.Merchant       // zero without one
	payments  []invoice.Payment      // the newest, at most MaxPayments, newest first
	refunds   []invoice.RefundRecord // the newest confirmed ones, at most MaxRefunds, newest first
	awaited   time.Time              // until when orphaned payments are awaited; zero without one
	others    []invoice.Payment      // the newest to its settlement address without an invoice, at most maxUnmatched
	waived    bool                   // a person accepts less than the amount
	chain     chain.Chain
	token     chain.Token
	following following
	now       time.Time
}

// view is the content of the page without the time left. Amounts are in major units.
type view struct {
	ID       string
	Merchant string
	Brand    brand
	Network  string
	Currency string
	Amount   string
	Money    string // Amount with the currency
	Due      string // the amount that is still due, or Amount if nothing is
	Rest     bool   // Due is the rest of a partly paid invoice
	// Description is the merchant's description of the invoice; may be empty.
	Description string
	Lines       []line
	ExpiresAt   time.Time

	State    state
	Headline string
	Text     []template.HTML
	// Refers is set if Text asks the payer to contact the merchant.
	Refers bool
	// Unmatched is set if Text asks the payer to look a payment of another amount up.
	Unmatched  bool
	HasReceipt bool // there is a receipt
	Steps      []step
	Progress   *progress    // of the payment in the newest block, in state seen
	Pay        *instruction // nil if no amount is due
	Back       *back        // nil without a link
	Received   []receipt    // the newest
	Earlier    []receipt    // older ones
	More       int          // number of payments that both omit
	Refunds    []sentBack
	Record     []fact
}

// line is a line item.
type line struct{ Label, Amount string }

// step is a stage that a payment goes through.
type step struct {
	Label         string
	Done, Current bool
}

// progress is the number of confirmations of a payment and the number needed, which is 0
// if finality is a tag of the node.
type progress struct {
	Have  uint64        `json:"have"`
	Need  uint64        `json:"need"`
	Usual time.Duration `json:"-"` // until a payment is final; 0 if it is unknown
	// UsualText is Usual in the page's language; empty if it is unknown.
	UsualText string `json:"-"`
}

// receipt is a payment, which may be orphaned.
type receipt struct {
	Amount   string
	Currency string
	Tx       long
	From     long
	At       time.Time // of the block
	Status   invoice.PaymentStatus
	Late     bool
}

// sentBack is a confirmed refund.
type sentBack struct {
	Amount string
	Tx     long
	To     long
	At     time.Time // when it was confirmed
}

// fact is a term of the invoice or a detail of a transaction.
type fact struct {
	Name  string
	Value string
	URL   string // in the block explorer; empty without a page there
}

// long is a hash or an address, which pages shorten.
type long struct{ Text, URL string }

// Short returns the beginning and the end.
func (l long) Short() string {
	const begin, end = 10, 6
	if len(l.Text) <= begin+end {
		return l.Text
	}
	return l.Text[:begin] + "…" + l.Text[len(l.Text)-end:]
}

// Long returns the value if it is a hash or an address, else nil.
func (f fact) Long() *long {
	if !strings.HasPrefix(f.Value, "0x") {
		return nil
	}
	return &long{f.Value, f.URL}
}

// address and transaction return what pages shorten, of the invoice's chain.
func (s pageInput) address(a invoice.Address) long {
	return long{chain.Checksum(a), s.chain.AddressURL(a)}
}

func (s pageInput) transaction(tx invoice.Hash) long {
	return long{tx.String(), s.chain.TransactionURL(tx)}
}

// addressFact returns a fact about an address of the invoice's chain.
func (s pageInput) addressFact(id string, a invoice.Address) fact {
	return fact{s.text.T(id, nil), chain.Checksum(a), s.chain.AddressURL(a)}
}

// transactionFact returns a fact about a transaction of the invoice's chain.
func (s pageInput) transactionFact(id string, tx invoice.Hash) fact {
	return fact{s.text.T(id, nil), tx.String(), s.chain.TransactionURL(tx)}
}

// newView returns the content of the page. It is a pure function.
func newView(s pageInput) view {
	inv := s.invoice
	v := view{
		ID:          inv.ID,
		Merchant:    s.merchant(),
		Brand:       newBrand(s.profile),
		Network:     s.network(),
		Currency:    inv.Currency,
		Amount:      s.major(inv.Amount),
		Money:       s.money(inv.Amount).String(),
		Due:         s.major(inv.Amount),
		Description: inv.Details.Description,
		ExpiresAt:   inv.ExpiresAt,
		State:       s.state(),
		Record:      s.record(),
		Lines:       db.Each(inv.LineItems, func(item invoice.LineItem) line { return line{item.Label, s.major(item.Amount)} }),
		Refunds:     db.Each(s.refunds, s.sentBack),
	}
	received := db.Each(s.payments, s.receiptOf)
	shown := min(len(received), unfolded)
	v.Received, v.Earlier, v.More = received[:shown], received[shown:], max(0, int(inv.Sums.Payments)-len(received))
	v.Headline, v.Text = s.words(v.State)
	v.Refers, v.HasReceipt = s.refersToMerchant(v.State), s.hasReceipt()
	v.Back = s.back(v.State)
	switch v.State {
	case waiting:
		v.Pay = s.payInFull()
		v.Steps = s.steps(0)
	case partial:
		v.Pay = s.payRemainder()
		v.Steps = s.steps(0)
		v.Due, v.Rest = v.Pay.Due, true
	case seen:
		v.Progress = s.progress()
		v.Steps = s.steps(1)
	case paid:
		v.Steps = s.steps(len(stages))
	case unknown, checking, refunded, expired, void, draft:
	}
	if v.Unmatched = slices.ContainsFunc(s.others, s.unmatched().has); v.Unmatched {
		v.Text = append(v.Text, s.say("status.unmatched", values{"Merchant": s.merchant()})...)
	}
	return v
}

// state returns the state of the invoice with its payments.
func (s pageInput) state() state {
	if s.isRefunded() {
		return refunded
	}
	if s.waived {
		return paid
	}
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
	case s.invoice.EndedInLostPast():
		return checking
	case s.following.isBlind(s.now):
		return unknown
	case s.now.After(s.invoice.ExpiresAt):
		return checking
	case !s.now.After(s.awaited):
		return unknown
	case s.invoice.Partial():
		return partial
	}
	return waiting
}

// awaitOrphans is how long after a reorg a payment that it has dropped is awaited. Until then the page
// asks for no other payment, because most are mined again within minutes.
const awaitOrphans = 10 * time.Minute

// awaitedUntil returns the time until which the newest payments that a reorg has dropped are awaited, or the zero time.
func awaitedUntil(newest []ledger.PaymentRow) (until time.Time) {
	for _, p := range newest {
		if end := p.OrphanedAt.Add(awaitOrphans); p.Status == invoice.Orphaned && end.After(until) {
			until = end
		}
	}
	return until
}

// isRefunded reports whether the invoice is final and all that has arrived was sent back.
func (s pageInput) isRefunded() bool {
	inTime, late := s.invoice.Arrived()
	arrived := inTime.Plus(late)
	return s.isFinal() && !arrived.IsZero() && !s.invoice.AmountRefunded.Less(arrived)
}

// unfolded is how many payments the page shows unfolded.
const unfolded = 3

func (s pageInput) receiptOf(p invoice.Payment) receipt {
	return receipt{
		Amount: s.major(p.Amount), Currency: s.invoice.Currency, Tx: s.transaction(p.TxHash), From: s.address(p.From),
		At: p.BlockTime, Status: p.Status.Shown(), Late: s.invoice.IsLate(p.Position),
	}
}

func (s pageInput) sentBack(r invoice.RefundRecord) sentBack {
	t := r.Transfer
	return sentBack{Amount: s.major(t.Amount), At: t.ConfirmedAt, Tx: s.transaction(t.TxHash), To: s.address(t.To)}
}

// progress returns the confirmations of the newest pending payment.
func (s pageInput) progress() *progress {
	_, newest := s.pendingBlocks()
	return s.confirmations(newest)
}

// pendingBlocks returns the blocks of the oldest and the newest pending payment, 0 without one.
func (s pageInput) pendingBlocks() (oldest, newest uint64) {
	for _, p := range s.payments {
		if p.IsUnconfirmed() {
			if oldest == 0 || p.BlockNumber < oldest {
				oldest = p.BlockNumber
			}
			newest = max(newest, p.BlockNumber)
		}
	}
	return oldest, newest
}

// confirmations returns the confirmations of a payment in a block: 0 for block 0.
func (s pageInput) confirmations(block uint64) *progress {
	p := s.following.confirmations(s.chain.Finality, block)
	p.UsualText = s.usual(p.Usual)
	return p
}

// confirmations returns the number of blocks from a block to the head, or 0 for block 0.
func (f following) confirmations(finality chain.Finality, block uint64) *progress {
	p := progress{Usual: f.usualTime()}
	if block > 0 && f.indexed.Number >= block {
		p.Have = f.indexed.Number - block + 1
	}
	if finality.Tag == "" {
		p.Need = finality.Depth + 1
		p.Have = min(p.Have, p.Need)
	}
	return &p
}

// stages are the ids of the stages of a payment.
var stages = []string{"steps.waiting", "steps.seen", "status.paid.headline"}

// steps returns the stages, of which the first done are completed.
func (s pageInput) steps(done int) []step {
	list := make([]step, len(stages))
	for i, id := range stages {
		list[i] = step{Label: s.text.T(id, nil), Done: i < done, Current: i == done}
	}
	return list
}

// major formats an amount in major units.
func (s pageInput) major(a invoice.Amount) string { return a.Major(s.token.Decimals) }
