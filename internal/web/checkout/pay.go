package checkout

import (
	"fmt"
	"html/template"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// instruction holds the payment instructions.
type instruction struct {
	Address string // settlement or deposit address, with ERC-55 checksum
	Token   string // contract of the currency
	Due     string // amount due, in major units
	// DueMoney is Due with the currency.
	DueMoney money
	Data     string // calldata of a tagged transfer of Due; empty for a deposit address
	Plain    *plain // nil if plain transfers cannot be attributed
	Call     *call  // nil without a registry
}

// plain is a transfer from any wallet that is attributed by its amount or the deposit
// address. Amount and Extra are in major units.
type plain struct {
	Amount string // exact amount, or the amount due
	Extra  string // part that exceeds the amount due; empty if any amount counts
	Link   string // ERC-681 URL of the transfer
}

// call is a registry call that pays the invoice.
type call struct{ Registry, Arguments string }

// payInFull returns the instructions for the whole amount.
func (s pageInput) payInFull() *instruction {
	inv := s.invoice
	p := s.instruct(inv.Amount, inv.TransferAmount)
	if s.chain.TakesPayment(inv) {
		t := chain.ContractTerms(inv.Terms, inv.ID)
		p.Call = &call{chain.Checksum(s.chain.Registry), fmt.Sprintf("(%s, %s, %s, %d, 0x%x)",
			chain.Checksum(inv.Merchant), p.Token, inv.Amount, inv.ExpiresAt.Unix(), t.Salt)}
	}
	return p
}

// payRemainder returns the instructions for the remainder of a partly paid invoice, with
// its own transfer amount. The registry accepts only the whole amount.
func (s pageInput) payRemainder() *instruction {
	return s.instruct(s.rest(), s.invoice.RemainingTransfer)
}

// rest returns the remainder of a partly paid invoice.
func (s pageInput) rest() invoice.Amount {
	if s.invoice.Remaining.IsZero() {
		return s.invoice.Missing()
	}
	return s.invoice.Remaining
}

// instruct returns the instructions for an amount due and its transfer amount. Without a transfer
// amount, a plain transfer may not be attributed, so only tagged ones are offered. A deposit address
// takes the amount due in plain transfers.
func (s pageInput) instruct(due, transfer invoice.Amount) *instruction {
	p := &instruction{
		Address: chain.Checksum(s.invoice.PayTo()),
		Token:   chain.Checksum(s.invoice.Token),
		Due:     s.major(due), DueMoney: s.money(due),
	}
	if s.invoice.IsDeposit() {
		p.Plain = &plain{Amount: p.Due, Link: chain.TransferLink(s.invoice.Token, s.chain.ID, s.invoice.DepositAddress, due)}
		return p
	}
	p.Data = chain.TaggedTransfer(s.invoice.Merchant, due, s.invoice.CommitmentID)
	if !transfer.IsZero() {
		p.Plain = &plain{
			Amount: s.major(transfer),
			Extra:  s.major(transfer.Minus(due)),
			Link:   chain.TransferLink(s.invoice.Token, s.chain.ID, s.invoice.Merchant, transfer),
		}
	}
	return p
}

// qrChoice is a QR code that the payer can choose, with the ids of its texts.
type qrChoice struct{ ID, Label, Hint, Text string }

// codes returns the QR codes: of the address, of the whole transfer, and of the page at a URL.
func (p *instruction) codes(page string) (all []qrChoice) {
	if p.Plain != nil {
		all = append(all,
			qrChoice{"address", "pay.send.address", "pay.scan.address", p.Address},
			qrChoice{"request", "pay.scan.request", "pay.scan.text", p.Plain.Link})
	}
	return append(all, qrChoice{"page", "pay.scan.page", "pay.scan.phone", page})
}

// URL returns Link as a trusted URL. It contains only addresses and numbers.
func (p plain) URL() template.URL {
	return template.URL(p.Link) //nolint:gosec // see above
}

// record returns the terms that are hashed into the on-chain id, and the outcome of the invoice on the
// chain.
func (s pageInput) record() []fact {
	inv := s.invoice
	name := func(id string) string { return s.text.T(id, nil) }
	facts := []fact{
		{Name: name("record.id"), Value: inv.CommitmentID.String()},
		{Name: name("record.chainId"), Value: fmt.Sprint(s.chain.ID)},
	}
	if !inv.Registry.IsZero() {
		facts = append(facts, s.addressFact("script.proof.registry", inv.Registry))
	}
	facts = append(facts,
		s.addressFact("record.merchant", inv.Merchant),
		s.addressFact("record.token", inv.Token),
		fact{Name: name("pay.send.amount"), Value: s.text.T("record.minor", values{"Amount": inv.Amount.String()})},
		fact{Name: name("record.until"), Value: fmt.Sprintf("%d (%s)", inv.ExpiresAt.Unix(), s.text.Clock(inv.ExpiresAt))},
		fact{Name: name("record.invoiceId"), Value: inv.ID},
	)
	if !inv.DepositAddress.IsZero() {
		facts = append(facts,
			s.addressFact("record.factory", inv.DepositFactory),
			s.addressFact("record.deposit", inv.DepositAddress),
		)
	}
	if inv.Status == invoice.Paid {
		facts = append(facts, s.transactionFact("record.settled", inv.SettledTx))
	}
	if !inv.SweptTx.IsZero() {
		facts = append(facts, s.transactionFact("record.swept", inv.SweptTx))
	}
	return facts
}
