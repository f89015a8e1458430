package checkout

import (
	"fmt"
	"slices"

	"github.com/quittance/quittance/internal/chain"
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
	Text      []string
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
		return checkResult{Tone: warn, Headline: "The network cannot be asked right now",
			Text: []string{"No payment of this transaction has been seen so far. Please try again in a minute. A payment that you have sent is not lost."}}
	case l.report.State == inspect.Unknown:
		return checkResult{Tone: wait, Headline: "Not found yet",
			Text: []string{"No network that this service knows has this transaction. A transfer that was just sent may take a minute to appear, and an exchange may take longer to send it. Check the hash, and try again then."}}
	case l.report.Chain.Key != s.chain.Key:
		return s.resultOnOtherChain(*l.report)
	case l.report.State == inspect.Queued:
		return checkResult{Tone: wait, Changing: true, Headline: "Sent, but not in a block yet",
			Text: []string{"The network knows this transaction and has not carried it out yet. This page shows what becomes of it."}}
	case l.report.State == inspect.Failed:
		return checkResult{Tone: warn, Headline: "The transaction failed",
			Text: []string{"The network refused it, so nothing was transferred. Your wallet shows why; often the network fee ran out. Please send the payment again from the invoice’s page."}}
	}
	return s.resultOfMined(*l.report)
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
		return checkResult{Tone: warn, Headline: "Counted for another order",
			Text: []string{"This payment was counted for another order. If you think that this is wrong, contact " + s.merchant() + " and give the transaction’s hash."}}
	case p.Status == invoice.Orphaned:
		return checkResult{Tone: wait, Changing: true, Headline: "Taken back by the network",
			Text: []string{"The network replaced the block that held this payment. In most cases it is carried out again within minutes, and then it is shown here. Please do not send it again before."}}
	case !p.Attributed():
		return s.resultOfUnattributed(p)
	}
	v := checkResult{Tone: good, Headline: "Your payment is counted",
		Text: []string{fmt.Sprintf("%s arrived on %s and is counted for this invoice.", s.money(p.Amount), clock(p.BlockTime))}}
	switch {
	case s.invoice.Status == invoice.Void:
		v.Tone, v.Headline = warn, "This invoice was cancelled"
		v.Text = []string{fmt.Sprintf("%s arrived on %s. The money is at %s’s address; contact %s to have it sent back.",
			s.money(p.Amount), clock(p.BlockTime), s.merchant(), s.merchant())}
	case s.invoice.IsLate(p.Position):
		v.Tone, v.Headline = warn, "Your payment came too late"
		v.Text = []string{fmt.Sprintf("%s arrived on %s. The time to pay had ended on %s, so it does not settle the invoice. The money is at %s’s address; contact %s to have it accepted or sent back.",
			s.money(p.Amount), clock(p.BlockTime), clock(s.invoice.ExpiresAt), s.merchant(), s.merchant())}
	}
	if p.Status == invoice.Pending {
		v.Progress, v.Changing = s.confirmations(p.BlockNumber), true
		if v.Tone == good {
			v.Tone, v.Headline = wait, "Your payment is being confirmed"
			v.Text = []string{fmt.Sprintf("%s arrived on %s, in time for this invoice. It counts once the network can no longer take it back. You need not do anything more.", s.money(p.Amount), clock(p.BlockTime))}
		}
	}
	return v
}

// resultOfUnattributed returns why a payment was not attributed to the invoice.
func (s pageInput) resultOfUnattributed(p invoice.Payment) checkResult {
	d := invoice.NearInvoice{Invoice: s.invoice, Asks: s.suggestedAmounts(), Covered: s.covered()}.Differ(p.Transfer)
	v := checkResult{Tone: warn, Headline: "Received, but not matched to an order", Claimable: &p}
	amount := fmt.Sprintf("%s has arrived at %s’s address. ", s.money(p.Amount), s.merchant())
	switch {
	case !d.Short.IsZero():
		amount += fmt.Sprintf("That is %s less than this invoice asks for. Exchanges and wallets often keep a fee.", s.money(d.Short))
	case !d.Over.IsZero():
		amount += fmt.Sprintf("That is %s more than this invoice asks for.", s.money(d.Over))
	case d.Payable():
		amount += "The amount is right, but it did not say which order it is for."
	default:
		amount += "The amount is right."
	}
	v.Text = append(v.Text, amount)
	switch {
	case d.LateBy > 0:
		v.Text = append(v.Text, fmt.Sprintf("It arrived on %s, after the time to pay had ended on %s.", clock(p.BlockTime), clock(s.invoice.ExpiresAt)))
	case d.Early:
		v.Text = append(v.Text, "It was made before this invoice was created.")
	}
	if d.Covered {
		v.Text = append(v.Text, "This invoice has its money already, from another payment.")
	}
	return v
}

// resultOnOtherChain returns the result of a transaction on another chain than the
// invoice's.
func (s pageInput) resultOnOtherChain(r inspect.Report) checkResult {
	v := checkResult{Tone: warn, Headline: "Sent on another network", Text: []string{fmt.Sprintf(
		"This transaction is on %s. The invoice is to be paid on %s, so it cannot be counted.", networkName(r.Chain.Key), networkName(s.chain.Key))}}
	reached := slices.ContainsFunc(r.Transfers, func(m inspect.Transfer) bool { return s.receives(m.To) })
	switch {
	case r.State == inspect.Failed:
		v.Text = append(v.Text, "It failed there, so nothing was transferred.")
	case reached:
		v.Text = append(v.Text, fmt.Sprintf("The money went to the same address on that network. Contact %s and give the transaction’s hash.", s.merchant()))
	default:
		v.Text = append(v.Text, "It did not go to "+s.merchant()+"’s address there.")
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
		return checkResult{Tone: wait, Changing: true, Headline: "Found on the network",
			Text: []string{"The transfer went to the right address in the right token. It is counted as soon as this service has read its block, which takes a moment."}}
	case len(here) > 0:
		return checkResult{Tone: warn, Headline: "Another token was sent", Text: []string{
			fmt.Sprintf("%s went to %s’s address. This invoice asks for %s on %s, which is the token below. Another token cannot be counted.",
				s.tokenName(here[0]), s.merchant(), s.invoice.Currency, networkName(s.chain.Key)),
			fmt.Sprintf("Contact %s to have it accepted or sent back, and give the transaction’s hash.", s.merchant()),
		}, Facts: append(tokenFact("Token that was sent", here[0].Token), tokenFact("Token of this invoice", s.invoice.Token)...)}
	case len(r.Transfers) > 0:
		m := r.Transfers[0]
		return checkResult{Tone: warn, Headline: "Sent to another address", Text: []string{
			fmt.Sprintf("%s went to another address than this invoice’s, which got nothing from this transaction.", s.tokenName(m)),
		}, Facts: []fact{{"Address that it went to", chain.Checksum(m.To)}, {"Address of this invoice", chain.Checksum(s.invoice.PayTo())}}}
	}
	return checkResult{Tone: warn, Headline: "This transaction moved no money", Text: []string{
		fmt.Sprintf("It was carried out, but no token was transferred in it. Look in your wallet for the transfer of %s, and enter its hash.", s.invoice.Currency)}}
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
		return "The network’s own coin"
	case known:
		return name
	}
	return "Another token"
}

// tokenFact returns the contract of a token. The native coin has none.
func tokenFact(name string, token invoice.Address) []fact {
	if token.IsZero() {
		return nil
	}
	return []fact{{name, chain.Checksum(token)}}
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
