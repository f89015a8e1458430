package checkout

import (
	"html/template"
	"slices"

	"github.com/quittance/quittance/internal/inspect"
	"github.com/quittance/quittance/internal/invoice"
)

// lookup holds what was found of a transaction.
type lookup struct {
	payments []invoice.Payment // its stored payments, on any chain
	report   *inspect.Report   // of the nodes; nil if they were not asked
}

// tone is the style of a checkResult.
type tone string

const (
	good tone = "good" // counted
	wait tone = "wait" // nothing to do yet
	warn tone = "warn" // action is required
)

// checkResult is the result of checking a transaction for an invoice.
type checkResult struct {
	Tone      tone
	Headline  string
	Text      []template.HTML
	Facts     []fact
	Progress  *progress        // of a pending payment
	Changing  bool             // it may change soon
	Claimable *invoice.Payment // unattributed payment that the payer may claim
}

// resultOf returns the result of a transaction for the invoice. It reveals nothing about
// other invoices but that the payment is attributed to one. It is a pure function.
func (s pageInput) resultOf(l lookup) checkResult {
	if p, ok := s.relevant(l.payments); ok {
		return s.resultOfPayment(p)
	}
	switch {
	case l.report == nil:
		return s.result(warn, "result.unavailable.headline", s.say("result.unavailable.text", nil))
	case l.report.State == inspect.Unknown:
		return s.result(wait, "result.unknown.headline", s.say("result.unknown.text", nil))
	case l.report.Chain.Key != s.chain.Key:
		return s.resultOnOtherChain(*l.report)
	case l.report.State == inspect.Queued:
		return s.result(wait, "result.queued.headline", s.say("result.queued.text", nil)).changing()
	case l.report.State == inspect.Failed:
		return s.result(warn, "result.failed.headline", s.say("result.failed.text", nil))
	}
	return s.resultOfMined(*l.report)
}

// result returns a result with a headline and sentences.
func (s pageInput) result(t tone, headline string, text []template.HTML) checkResult {
	return checkResult{Tone: t, Headline: s.text.T(headline, nil), Text: text}
}

// changing marks a result that may change soon.
func (v checkResult) changing() checkResult {
	v.Changing = true
	return v
}

// relevant returns the stored payment that is most relevant to the invoice: its own, else
// an unattributed one, else that of another invoice.
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
		return s.result(warn, "result.other.headline", s.say("result.other.text", values{"Merchant": s.merchant()}))
	case p.Status == invoice.Orphaned:
		return s.result(wait, "result.orphaned.headline", s.say("result.orphaned.text", nil)).changing()
	case !p.Attributed():
		return s.resultOfUnattributed(p)
	}
	said := values{"Amount": s.money(p.Amount), "Time": s.text.Time(p.BlockTime), "End": s.text.Time(s.invoice.ExpiresAt), "Merchant": s.merchant()}
	v := s.result(good, "result.counted.headline", s.say("result.counted.text", said))
	switch {
	case s.invoice.Status == invoice.Void:
		v = s.result(warn, "result.void.headline", s.say("result.void.text", said))
	case s.invoice.IsLate(p.Position):
		v = s.result(warn, "result.late.headline", s.say("result.late.text", said))
	case p.Status == invoice.Pending:
		v = s.result(wait, "result.confirming.headline", s.say("result.confirming.text", said))
	}
	if p.Status == invoice.Pending {
		v.Progress, v.Changing = s.confirmations(p.BlockNumber), true
	}
	return v
}

// resultOfUnattributed returns why a payment was not attributed to the invoice.
func (s pageInput) resultOfUnattributed(p invoice.Payment) checkResult {
	d := invoice.NearInvoice{Invoice: s.invoice, Asks: s.suggestedAmounts(), Covered: s.covered()}.Differ(p.Transfer)
	said := values{"Amount": s.money(p.Amount), "Merchant": s.merchant(), "Difference": s.money(d.Short.Plus(d.Over))}
	amount := "result.unmatched.right"
	switch {
	case !d.Short.IsZero():
		amount = "result.unmatched.short"
	case !d.Over.IsZero():
		amount = "result.unmatched.over"
	case d.Payable():
		amount = "result.unmatched.unnamed"
	}
	v := s.result(warn, "result.unmatched.headline", s.say(amount, said))
	v.Claimable = &p
	switch {
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

// resultOnOtherChain returns the result of a transaction on another chain than the
// invoice's.
func (s pageInput) resultOnOtherChain(r inspect.Report) checkResult {
	v := s.result(warn, "result.network.headline", s.say("result.network.text", values{"Other": s.networkName(r.Chain.Key), "Network": s.network()}))
	reached := slices.ContainsFunc(r.Transfers, func(m inspect.Transfer) bool { return s.receives(m.To) })
	switch {
	case r.State == inspect.Failed:
		v.Text = append(v.Text, s.say("result.network.failed", nil)...)
	case reached:
		v.Text = append(v.Text, s.say("result.network.reached", values{"Merchant": s.merchant()})...)
	default:
		v.Text = append(v.Text, s.say("result.network.elsewhere", values{"Merchant": s.merchant()})...)
	}
	return v
}

// resultOfMined returns the result of a mined transaction without a stored payment to the
// invoice's address.
func (s pageInput) resultOfMined(r inspect.Report) checkResult {
	var here []inspect.Transfer
	for _, m := range r.Transfers {
		if s.receives(m.To) {
			here = append(here, m)
		}
	}
	switch {
	case slices.ContainsFunc(here, func(m inspect.Transfer) bool { return m.Token == s.invoice.Token }):
		return s.result(wait, "result.found.headline", s.say("result.found.text", nil)).changing()
	case len(here) > 0:
		v := s.result(warn, "result.token.headline", s.say("result.token.text", values{
			"Token": s.tokenName(here[0]), "Merchant": s.merchant(), "Currency": s.invoice.Currency, "Network": s.network()}))
		v.Text = append(v.Text, s.say("result.token.contact", values{"Merchant": s.merchant()})...)
		v.Facts = append(s.tokenFact("result.token.sent", here[0].Token), s.tokenFact("result.token.wanted", s.invoice.Token)...)
		return v
	case len(r.Transfers) > 0:
		m := r.Transfers[0]
		v := s.result(warn, "result.address.headline", s.say("result.address.text", values{"Token": s.tokenName(m)}))
		v.Facts = []fact{
			s.addressFact("result.address.sent", m.To),
			s.addressFact("result.address.wanted", s.invoice.PayTo()),
		}
		return v
	}
	return s.result(warn, "result.nothing.headline", s.say("result.nothing.text", values{"Currency": s.invoice.Currency}))
}

// receives reports whether the address is the invoice's settlement or deposit address.
func (s pageInput) receives(a invoice.Address) bool {
	return a == s.invoice.Merchant || a == s.invoice.PayTo()
}

// tokenName returns the display name of a token.
func (s pageInput) tokenName(m inspect.Transfer) string {
	switch name, known := lookalikes[lookalike{s.chain.ID, m.Token}]; {
	case m.Currency != "":
		return m.Amount.Major(s.decimals(m.Token)) + "\u00a0" + m.Currency
	case m.Token.IsZero():
		return s.text.T("token.coin", nil)
	case known:
		return name.in(s.text)
	}
	return s.text.T("token.another", nil)
}

// tokenFact returns the contract of a token. The native coin has none.
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
