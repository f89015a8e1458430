package checkout

import (
	"encoding/hex"
	"fmt"
	"html/template"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// instruction says what to send where. Amount and Extra are in major units.
type instruction struct {
	Amount  string // to be sent exactly
	Extra   string // what of it makes the transfer recognisable; empty without
	Plain   bool   // a plain transfer of Amount is recognised
	Address string // settlement address, in the form of ERC-55
	Token   string // contract of the currency
	Link    string // of ERC-681, with Plain alone
	Data    string // calldata of a transfer to Token that names the invoice
	Call    *call  // nil without a registry
}

// call is a call of the registry that pays the invoice.
type call struct{ Registry, Arguments string }

// payInFull asks for the transfer amount. Without one, no plain transfer is
// sure to be recognised: the invoice must be named.
func (s subject) payInFull() *instruction {
	inv := s.invoice
	p := s.instruct(inv.Amount)
	if !inv.TransferAmount.IsZero() {
		p.Plain = true
		p.Amount, p.Extra = s.major(inv.TransferAmount), s.major(inv.TransferAmount.Minus(inv.Amount))
		p.Link = fmt.Sprintf("ethereum:%s@%d/transfer?address=%s&uint256=%s",
			chain.Checksum(inv.Token), s.chain.ID, chain.Checksum(inv.Merchant), inv.TransferAmount)
	}
	if !s.chain.Registry.IsZero() {
		t := chain.ContractTerms(inv.Terms, inv.ID)
		p.Call = &call{chain.Checksum(s.chain.Registry), fmt.Sprintf("(%s, %s, %s, %d, 0x%x)",
			chain.Checksum(inv.Merchant), chain.Checksum(inv.Token), inv.Amount, inv.ExpiresAt, t.Salt)}
	}
	return p
}

// payRest asks for what is missing after a part has arrived. No transfer
// amount belongs to that, and the registry takes the whole alone.
func (s subject) payRest() *instruction {
	inTime, _ := s.sums()
	return s.instruct(s.invoice.Amount.Minus(inTime))
}

func (s subject) instruct(due invoice.Amount) *instruction {
	return &instruction{
		Amount:  s.major(due),
		Address: chain.Checksum(s.invoice.Merchant),
		Token:   chain.Checksum(s.invoice.Token),
		Data:    taggedTransfer(s.invoice, due),
	}
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
// outside but an address, a number and digits.
func (p instruction) URL() template.URL {
	return template.URL(p.Link) //nolint:gosec // see above
}

// AddressCode is the address as a QR code: any wallet reads that.
func (p instruction) AddressCode() (qrCode, error) { return newQRCode(p.Address) }

// LinkCode is the Link as a QR code, for wallets that know ERC-681.
func (p instruction) LinkCode() (qrCode, error) { return newQRCode(p.Link) }

// record lists what the on-chain id is a hash of.
func (s subject) record() []fact {
	inv := s.invoice
	facts := []fact{
		{"On-chain id", inv.CommitmentID.String()},
		{"Chain id", fmt.Sprint(s.chain.ID)},
	}
	if !s.chain.Registry.IsZero() {
		facts = append(facts, fact{"Registry", chain.Checksum(s.chain.Registry)})
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
