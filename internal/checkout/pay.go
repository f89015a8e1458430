package checkout

import (
	"encoding/hex"
	"fmt"
	"html/template"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// instruction says what to send where.
type instruction struct {
	Address string // settlement address, in the form of ERC-55
	Token   string // contract of the currency
	Due     string // what is missing, in major units
	Data    string // calldata of a transfer of Due to Token that names the invoice
	Plain   *plain // nil when no plain transfer is sure to be recognised
	Call    *call  // nil without a registry
}

// plain is a transfer from any wallet, recognised by its amount. Amount and
// Extra are in major units.
type plain struct {
	Amount string // to be sent exactly
	Extra  string // what of it is not due
	Link   string // the transfer as a URL of ERC-681
}

// call is a call of the registry that pays the invoice.
type call struct{ Registry, Arguments string }

// payInFull asks for the transfer amount.
func (s subject) payInFull() *instruction {
	inv := s.invoice
	p := s.instruct(inv.Amount, inv.TransferAmount)
	if s.chain.TakesPayment(inv) {
		t := chain.ContractTerms(inv.Terms, inv.ID)
		p.Call = &call{chain.Checksum(s.chain.Registry), fmt.Sprintf("(%s, %s, %s, %d, 0x%x)",
			p.Address, p.Token, inv.Amount, inv.ExpiresAt, t.Salt)}
	}
	return p
}

// payRest asks for what is missing after a part has arrived, by a transfer
// amount of its own. The registry takes the whole alone.
func (s subject) payRest() *instruction {
	return s.instruct(s.rest(), s.invoice.RemainingTransfer)
}

// rest returns what is missing after a part has arrived, as the payer was told.
func (s subject) rest() invoice.Amount {
	if s.invoice.Remaining.IsZero() {
		return s.invoice.Missing()
	}
	return s.invoice.Remaining
}

// instruct asks for an amount that is due, and for the transfer amount that was
// chosen for it. Without one, no plain transfer is sure to be recognised: the
// invoice must be named.
func (s subject) instruct(due, transfer invoice.Amount) *instruction {
	p := &instruction{
		Address: chain.Checksum(s.invoice.Merchant),
		Token:   chain.Checksum(s.invoice.Token),
		Due:     s.major(due),
		Data:    taggedTransfer(s.invoice, due),
	}
	if !transfer.IsZero() {
		p.Plain = &plain{
			Amount: s.major(transfer),
			Extra:  s.major(transfer.Minus(due)),
			Link: fmt.Sprintf("ethereum:%s@%d/transfer?address=%s&uint256=%s",
				p.Token, s.chain.ID, p.Address, transfer),
		}
	}
	return p
}

// taggedTransfer returns the calldata of an ERC-20 transfer to the merchant
// that ends in the invoice's commitment id, which the token ignores.
func taggedTransfer(inv invoice.Invoice, amount invoice.Amount) string {
	data := []byte{0xa9, 0x05, 0x9c, 0xbb} // transfer(address,uint256)
	data = append(data, make([]byte, 12)...)
	data = append(data, inv.Merchant[:]...)
	word := amount.Bytes()
	data = append(data, word[:]...)
	data = append(data, inv.CommitmentID[:]...)
	return "0x" + hex.EncodeToString(data)
}

// URL is the Link for an href. It is safe there: nothing in it comes from
// outside but addresses and numbers.
func (p plain) URL() template.URL {
	return template.URL(p.Link) //nolint:gosec // see above
}

// record lists what the on-chain id is a hash of.
func (s subject) record() []fact {
	inv := s.invoice
	facts := []fact{
		{"On-chain id", inv.CommitmentID.String()},
		{"Chain id", fmt.Sprint(s.chain.ID)},
	}
	if !inv.Registry.IsZero() {
		facts = append(facts, fact{"Registry", chain.Checksum(inv.Registry)})
	}
	facts = append(facts,
		fact{"Merchant’s address", chain.Checksum(inv.Merchant)},
		fact{"Token", chain.Checksum(inv.Token)},
		fact{"Amount", inv.Amount.String() + " minor units"},
		fact{"Pay until", fmt.Sprintf("%d (%s)", inv.ExpiresAt, clock(inv.ExpiresAt))},
		fact{"Invoice id", inv.ID},
	)
	if inv.Status == invoice.Paid {
		facts = append(facts, fact{"Settled by", inv.SettledTx.String()})
	}
	return facts
}
