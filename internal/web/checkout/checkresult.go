package checkout

import (
	"html/template"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// lookup is what is known about a transaction.
type lookup struct {
	payments []invoice.Payment // its stored payments, on any chain
	open     int               // of these, how many await a decision and may be for the invoice
	report   *chain.Report     // of the nodes; nil if they were not asked, or did not answer
	pending  bool              // the nodes have not answered yet
	replaced bool              // the report is that the transaction is unknown, and it cannot be mined any more
}

// tone is the style of a checkResult.
type tone string

const (
	good tone = "good" // counted
	busy tone = "wait" // wait
	warn tone = "warn" // action is required
)

// checkResult is the result of checking a transaction for an invoice.
type checkResult struct {
	Tone      tone
	Headline  string
	Text      []template.HTML
	Facts     []fact
	Progress  *progress        // of a pending payment
	Again     time.Duration    // until it may change; 0 if it does not
	Claimable *invoice.Payment // unattributed payment that the payer may claim
	Next      []nextStep       // what the payer can do; with Again or Claimable, the page offers that instead
}

// nextStep is a link to something that the payer can do.
type nextStep struct {
	Text string
	URL  template.URL
}

// resultOf returns the result of a transaction for the invoice. About other invoices it reveals only
// that the payment is attributed to one. It is a pure function.
func (s pageInput) resultOf(l lookup) checkResult {
	if p, ok := s.relevant(l.payments); ok {
		return s.resultOfPayment(p)
	}
	switch {
	case l.pending:
		return s.result(busy, "result.looking.headline", s.say("result.again", nil)).again(againSoon)
	case l.report == nil:
		return s.result(busy, "result.unavailable.headline", s.sayAll(nil, "result.unavailable.text", "result.again")).again(againAsk)
	case l.replaced:
		return s.result(warn, "result.replaced.headline", s.say("result.replaced.hash", nil)).next(s.payNext())
	case l.report.State == chain.Unknown:
		return s.result(busy, "result.unknown.headline", s.sayAll(nil, "result.unknown.text", "result.again")).again(againAsk)
	case l.report.Chain.Key != s.chain.Key:
		return s.resultOnOtherChain(*l.report)
	case l.report.State == chain.Queued:
		return s.result(busy, "result.queued.headline", s.say("result.again", nil)).again(againAsk)
	case l.report.State == chain.Failed:
		return s.result(warn, "result.failed.headline", s.say("result.failed.text", nil)).next(s.payNext())
	}
	return s.resultOfMined(*l.report)
}

// result returns a result with a headline and sentences.
func (s pageInput) result(t tone, headline string, text []template.HTML) checkResult {
	return checkResult{Tone: t, Headline: s.text.T(headline, nil), Text: text}
}

// again marks a result that may have changed after a time.
func (v checkResult) again(after time.Duration) checkResult {
	v.Again = after
	return v
}

// next adds a link to something that the payer can do.
func (v checkResult) next(steps []nextStep) checkResult {
	v.Next = append(v.Next, steps...)
	return v
}

// relevant returns the stored payment that is most relevant to the invoice: its own, else an
// unattributed one, else another invoice's.
func (s pageInput) relevant(payments []invoice.Payment) (invoice.Payment, bool) {
	for _, fits := range []func(invoice.Payment) bool{
		func(p invoice.Payment) bool { return p.InvoiceID == s.invoice.ID },
		func(p invoice.Payment) bool { return !p.Attributed() && s.invoice.Accepts(p.Transfer) },
		func(p invoice.Payment) bool { return p.Attributed() && s.invoice.Accepts(p.Transfer) },
	} {
		if i := slices.IndexFunc(payments, fits); i >= 0 {
			return payments[i], true
		}
	}
	return invoice.Payment{}, false
}

// resultOfPayment returns the result of a payment of the invoice's token to its address.
func (s pageInput) resultOfPayment(p invoice.Payment) checkResult {
	switch {
	case p.Attributed() && p.InvoiceID != s.invoice.ID:
		return s.result(warn, "result.other.headline", s.say("result.other.text", values{"Merchant": s.merchant()})).next(s.contactNext())
	case p.Status == invoice.Orphaned:
		return s.result(busy, "result.orphaned.headline", s.say("result.orphaned.text", nil)).again(againRead)
	case !p.Attributed():
		return s.resultOfUnattributed(p)
	}
	v := s.resultOfOwn(p)
	if p.IsUnconfirmed() {
		v.Progress, v.Again = s.confirmations(p.BlockNumber), againRead
	}
	return v
}

// resultOfOwn returns the result of a payment of the invoice. It counts if the page's state is seen or paid. In other
// states the page's own words show what it still lacks.
func (s pageInput) resultOfOwn(p invoice.Payment) checkResult {
	said := values{"Amount": s.money(p.Amount), "Time": s.text.Time(p.BlockTime)}
	arrived := s.say("result.counted.text", said)
	st := s.state()
	kept := p.Returned.IsZero() && st != refunded && st != void
	switch {
	case kept && s.invoice.IsLate(p.Position):
		text := append(arrived, s.say("status.ended", values{"Time": s.text.Time(s.invoice.ExpiresAt)})...)
		return s.result(warn, "receipt.state.late", append(text, s.safeWords()...)).next(s.contactNext())
	case kept && (st == seen || st == paid) && p.IsUnconfirmed():
		return s.result(busy, "status.seen.headline", s.sayAll(said, "result.confirming.text", "status.seen.text"))
	case kept && st == seen:
		return s.result(good, "result.counted.headline", arrived)
	case kept && st == paid:
		v := s.result(good, "result.counted.headline", append(arrived, s.excessWords()...))
		if !s.invoice.Excess().IsZero() {
			v = v.next(s.contactNext())
		}
		return v
	}
	return s.resultOfState(st, arrived)
}

// resultOfState returns a text and the page's words about a state.
func (s pageInput) resultOfState(st state, text []template.HTML) checkResult {
	headline, words := s.words(st)
	v := checkResult{Tone: warn, Headline: headline, Text: append(text, words...)}
	if !s.isFinal() {
		v.Text, v.Again = append(v.Text, s.refundWords()...), againRead
	}
	if pay := s.payNext(); pay != nil {
		return v.next(pay)
	}
	return v.next(s.contactNext())
}

// resultOfUnattributed returns why a payment was not attributed to the invoice.
func (s pageInput) resultOfUnattributed(p invoice.Payment) checkResult {
	d := invoice.NearInvoice{Invoice: s.invoice, Asks: s.suggestedAmounts(), Covered: s.covered()}.Differ(p.Transfer)
	said := values{"Amount": s.money(p.Amount), "Difference": s.money(d.Short.Plus(d.Over))}
	amount := "status.arrived"
	switch {
	case !d.Short.IsZero():
		amount = "result.unmatched.short"
	case !d.Over.IsZero():
		amount = "result.unmatched.over"
	}
	v := s.result(warn, "result.unmatched.headline", s.say(amount, said)).next(s.contactNext())
	if p.Screening != invoice.ScreeningRejected {
		v.Claimable = &p
	}
	switch {
	case amount == "status.arrived" && d.Payable():
		v.Text = append(v.Text, s.say("result.unmatched.unnamed", nil)...)
	case d.LateBy > 0:
		v.Text = append(v.Text, s.say("result.unmatched.late", values{"Time": s.text.Time(p.BlockTime), "End": s.text.Time(s.invoice.ExpiresAt)})...)
	case d.Early:
		v.Text = append(v.Text, s.say("result.unmatched.early", nil)...)
	}
	if d.Covered {
		v.Text = append(v.Text, s.say("result.unmatched.covered", nil)...)
	}
	return v
}

// resultOnOtherChain returns the result of a transaction on another chain than the invoice's.
func (s pageInput) resultOnOtherChain(r chain.Report) checkResult {
	v := s.result(warn, "result.network.headline", s.say("result.network.text", values{"Other": networkName(s.text, r.Chain.Key, r.Chain.Name), "Network": s.network()}))
	reached := slices.ContainsFunc(r.Transfers, func(m chain.Transfer) bool { return s.receives(m.To) })
	switch {
	case r.State == chain.Failed:
		v = v.next(s.payNext())
		v.Text = append(v.Text, s.say("result.network.failed", nil)...)
	case r.State == chain.Queued:
		v.Tone, v.Again = busy, againAsk
		v.Text = append(v.Text, s.say("result.network.queued", nil)...)
	case reached:
		v = v.next(s.contactNext())
		v.Text = append(v.Text, s.sayAll(values{"Merchant": s.merchant()}, "result.network.reached", "status.kept")...)
	default:
		v = v.next(s.payNext())
		v.Text = append(v.Text, s.say("result.network.elsewhere", values{"Merchant": s.merchant()})...)
	}
	return v
}

// resultOfMined returns the result of a mined transaction without a stored payment to the invoice's address.
func (s pageInput) resultOfMined(r chain.Report) checkResult {
	var here []chain.Transfer
	for _, m := range r.Transfers {
		if s.receives(m.To) {
			here = append(here, m)
		}
	}
	switch {
	case slices.ContainsFunc(here, func(m chain.Transfer) bool { return m.Token == s.invoice.Token }):
		return s.result(busy, "result.found.headline", s.say("result.found.text", nil)).again(againRead)
	case len(here) > 0:
		v := s.result(warn, "result.token.headline", s.say("result.token.text", values{
			"Token": s.tokenName(here[0]), "Merchant": s.merchant(), "Currency": s.invoice.Currency, "Network": s.network()}))
		v.Text = append(v.Text, s.say("status.kept", values{"Merchant": s.merchant()})...)
		v = v.next(s.contactNext())
		v.Facts = append(s.tokenFact("result.token.sent", here[0].Token), s.tokenFact("result.token.wanted", s.invoice.Token)...)
		return v
	case len(r.Transfers) > 0:
		m := r.Transfers[0]
		v := s.result(warn, "result.address.headline", s.say("result.address.text", values{"Token": s.tokenName(m)})).
			next(s.payNext()).next(s.contactNext())
		v.Facts = []fact{
			s.addressFact("result.address.sent", m.To),
			s.addressFact("result.address.wanted", s.invoice.PayTo()),
		}
		return v
	}
	return s.result(warn, "result.nothing.headline", s.say("result.nothing.text", values{"Currency": s.invoice.Currency})).next(s.payNext())
}

// receives reports whether the address is the invoice's settlement or deposit address.
func (s pageInput) receives(a invoice.Address) bool {
	return a == s.invoice.Merchant || a == s.invoice.PayTo()
}

// payNext returns the link to the instructions, if the invoice can be paid.
func (s pageInput) payNext() []nextStep {
	if st := s.state(); st != waiting && st != partial {
		return nil
	}
	return []nextStep{{s.text.T("result.pay", nil), template.URL("/checkout/" + s.invoice.ID + "?lang=" + s.text.Lang() + "#pay")}} //nolint:gosec // a stored id, and the tag of a language
}

// contactNext returns the link to the merchant's support, if that is known.
func (s pageInput) contactNext() []nextStep {
	b := newBrand(s.profile)
	if b.Contact == "" {
		return nil
	}
	return []nextStep{{s.text.T("common.contact", values{"Merchant": s.merchant()}), b.ContactURL}}
}

// tokenName returns the display name of a token, with the amount if its decimals are known.
func (s pageInput) tokenName(m chain.Transfer) string {
	switch other, known := s.chain.Lookalike(m.Token); {
	case m.Currency != "":
		return m.Amount.Major(s.decimals(m.Token)) + "\u00a0" + m.Currency
	case m.Token.IsZero():
		return s.text.T("token.coin", nil)
	case known && other.Bridges == "":
		return m.Amount.Major(chain.TokenDecimals) + "\u00a0" + other.Name
	case known:
		return m.Amount.Major(chain.TokenDecimals) + "\u00a0" + s.text.T("token.bridged", values{"Name": other.Name, "Currency": other.Bridges})
	}
	return s.text.T("token.another", nil)
}

// tokenFact returns the contract of a token, or no fact for the native coin.
func (s pageInput) tokenFact(id string, token invoice.Address) []fact {
	if token.IsZero() {
		return nil
	}
	return []fact{s.addressFact(id, token)}
}

// decimals returns the decimals of a token of the chain.
func (s pageInput) decimals(token invoice.Address) int {
	t, _ := s.chain.TokenAt(token)
	return t.Decimals
}

// suggestedAmounts returns the transfer amounts that the page has shown.
func (s pageInput) suggestedAmounts() []invoice.Amount {
	if !s.invoice.Partial() {
		return nil
	}
	return []invoice.Amount{s.rest(), s.invoice.RemainingTransfer}
}

// covered reports whether the payments cover the amount.
func (s pageInput) covered() bool {
	return s.invoice.Status == invoice.Paid || s.invoice.Covered()
}
