package e2e

import (
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/contracts/hostile"
	"github.com/quittance/quittance/internal/dev/devchain"
	"github.com/quittance/quittance/webhook"
)

// TestExtraLookalikeEvents emits the logs of an invoice that is opened, paid and closed from other
// contracts: a token that moves no money, the registry's code at another address, and the registry
// with other terms. None of the logs counts. A genuine payment does.
func TestExtraLookalikeEvents(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	attacker := devchain.Address(s.attacker)
	registry, lookalike, falseToken := contracts.NewInvoiceRegistry(), hostile.NewLookalike(), hostile.NewFakeToken()
	lookalikeAt := s.deploy(hostile.LookalikeMetaData.Bin)
	falseTokenAt := s.deploy(hostile.FakeTokenMetaData.Bin)
	registryAt := s.deploy(contracts.InvoiceRegistryMetaData.Bin, registry.PackConstructor(attacker, attacker)...)
	s.pay(s.payer, attacker, "1000000")
	s.approve(s.attacker, lookalikeAt)
	s.approve(s.attacker, s.chain.Registry)
	s.serve(nil)
	victim := s.invoice("10000000", s.shop())
	terms, asked, tag := s.contractTerms(victim), units(t, victim.Invoice.TransferAmount), id(victim)

	s.call(s.attacker, lookalikeAt, lookalike.PackTell(tag, s.customer(), s.shop(), s.chain.Token, terms.Amount))
	dust := s.call(s.attacker, lookalikeAt, lookalike.PackEmbellish(tag, s.chain.Token, s.shop(), big.NewInt(7), terms.Amount))

	s.call(s.attacker, falseTokenAt, falseToken.PackTransfer(s.shop(), asked))
	s.call(s.attacker, falseTokenAt, append(falseToken.PackTransferFrom(s.customer(), s.shop(), terms.Amount), tag[:]...))
	s.call(s.attacker, falseTokenAt, falseToken.PackEmitMany([]common.Address{s.shop(), s.shop()}, asked))
	s.call(s.attacker, falseTokenAt, falseToken.PackPretend())
	foreign := terms
	foreign.Token = falseTokenAt
	s.call(s.attacker, registryAt, registry.PackPay(foreign))
	s.call(s.attacker, s.chain.Registry, registry.PackPay(foreign)) // a genuine event Paid of another commitment id

	cheap := terms
	cheap.Amount = big.NewInt(1)
	penny := s.call(s.attacker, s.chain.Registry, registry.PackPay(cheap))

	s.final()
	// Both are genuine transfers of the token, but pay no invoice.
	moved := []listed{s.paid(dust, "7", nil), s.paid(penny, "1", nil)}
	for i := range moved {
		moved[i].from = attacker
	}
	s.wantPayments(moved...)
	s.want(victim, untouched)
	s.awaitStatus(victim, contracts.StatusOpen) // the service did not observe that it is open

	honest := s.pay(s.payer, s.shop(), victim.Invoice.TransferAmount)
	s.expect(victim, webhook.PaymentReceived, webhook.InvoicePaid)
	s.final()
	s.wantPayments(append(slices.Clone(moved), s.paid(honest, victim.Invoice.TransferAmount, &victim))...)
	s.want(victim, invoiceState{status: apitypes.StatusPaid, by: honest, paid: victim.Invoice.TransferAmount, back: "0"})
	s.awaitStatus(victim, contracts.StatusClosed)
	s.wantEvents()
}

// TestExtraPoisoning lets an attacker send zero transfers from the addresses of others, and a
// customer pay an address that resembles the shop's.
func TestExtraPoisoning(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.serve(nil)
	victim := s.invoice("10000000", s.shop())
	tag, nothing := id(victim), new(big.Int)
	impostor := s.shop() // with the first and last digits of the shop's address
	for i := 3; i < len(impostor)-3; i++ {
		impostor[i] ^= 0x5a
	}
	inNameOf := func(from, to common.Address) {
		t.Helper()
		s.call(s.attacker, s.chain.Token, append(s.token.PackTransferFrom(from, to, nothing), tag[:]...))
	}
	poison := func() {
		t.Helper()
		s.pay(s.attacker, s.shop(), "0")
		s.pay(s.attacker, s.shop(), "0", tag[:]...)
		inNameOf(s.customer(), s.shop())
		inNameOf(s.shop(), s.customer())
		inNameOf(s.customer(), impostor)
		inNameOf(impostor, s.shop())
		inNameOf(s.shop(), impostor)
	}
	poison()
	s.pay(s.payer, impostor, victim.Invoice.TransferAmount)
	s.pay(s.payer, impostor, victim.Invoice.Amount, tag[:]...)
	s.final()
	s.wantPayments()
	s.want(victim, untouched)

	honest := s.pay(s.payer, s.shop(), victim.Invoice.TransferAmount)
	s.expect(victim, webhook.PaymentReceived, webhook.InvoicePaid)
	poison()
	s.final()
	s.wantPayments(s.paid(honest, victim.Invoice.TransferAmount, &victim))
	s.want(victim, invoiceState{status: apitypes.StatusPaid, by: honest, paid: victim.Invoice.TransferAmount, back: "0"})
	s.wantEvents()
}

// TestExtraForeignTags sends transfers with a calldata tag that names an invoice they cannot pay, or with a
// different amount.
func TestExtraForeignTags(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	disperse := hostile.NewDisperse()
	disperseAt := s.deploy(hostile.DisperseMetaData.Bin)
	s.approve(s.payer, disperseAt)
	s.serve(nil)
	elsewhere := common.HexToAddress("0x00000000000000000000000000000000000Be11A")
	named, other, third := s.invoice("10000000", s.shop()), s.invoice("20000000", s.shop()), s.invoice("30000000", s.shop())
	abroad := s.invoice("40000000", elsewhere)
	tag := func(made apitypes.CreateInvoiceResponse) []byte { h := id(made); return h[:] }

	// The tag is explicit, so it takes precedence over the amount.
	wrongAmount := s.pay(s.payer, s.shop(), other.Invoice.TransferAmount, tag(named)...)
	s.expect(named, webhook.PaymentReceived, webhook.InvoicePaid)
	// At another address the tag is ignored, and the amount counts.
	wrongAddress := s.pay(s.payer, elsewhere, abroad.Invoice.TransferAmount, tag(other)...)
	s.expect(abroad, webhook.PaymentReceived, webhook.InvoicePaid)
	wrongToo := s.pay(s.payer, s.shop(), third.Invoice.TransferAmount, tag(abroad)...)
	s.expect(third, webhook.PaymentReceived, webhook.InvoicePaid)

	// A failed transaction has no effect, with any calldata.
	sum := units(t, other.Invoice.TransferAmount)
	tooMuch := new(big.Int).Lsh(sum, 64)
	s.callReverts(s.payer, disperseAt, append(disperse.PackDisperse(s.chain.Token,
		[]common.Address{s.shop(), s.shop()}, []*big.Int{sum, tooMuch}), tag(other)...))
	s.callReverts(s.attacker, s.chain.Token, append(s.token.PackTransfer(s.shop(), sum), tag(other)...))
	s.callReverts(s.payer, s.chain.Registry, contracts.NewInvoiceRegistry().PackPay(s.contractTerms(other))) // no allowance

	// A transfer from the shop to itself pays no invoice.
	funding := s.pay(s.payer, s.shop(), "50000000")
	toItself := s.pay(s.till, s.shop(), other.Invoice.TransferAmount, tag(other)...)
	s.final()

	s.want(named, invoiceState{status: apitypes.StatusPaid, by: wrongAmount, paid: other.Invoice.TransferAmount, back: "0", exception: apitypes.ExceptionOverpaid})
	s.want(other, untouched)
	s.want(third, invoiceState{status: apitypes.StatusPaid, by: wrongToo, paid: third.Invoice.TransferAmount, back: "0"})
	s.want(abroad, invoiceState{status: apitypes.StatusPaid, by: wrongAddress, paid: abroad.Invoice.TransferAmount, back: "0"})
	selfPaid := s.paid(toItself, other.Invoice.TransferAmount, nil)
	selfPaid.from = s.shop()
	s.wantPayments(
		s.paid(wrongAmount, other.Invoice.TransferAmount, &named), s.paid(wrongAddress, abroad.Invoice.TransferAmount, &abroad),
		s.paid(wrongToo, third.Invoice.TransferAmount, &third), s.paid(funding, "50000000", nil), selfPaid,
	)
	s.wantEvents()
}

// TestExtraStolenPayment lets an attacker execute transfers that customers have authorized. The attacker's
// transactions end with the commitment of the attacker's invoice. The customers' payments must not be
// attributed to it.
func TestExtraStolenPayment(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	drainer := hostile.NewDrainer()
	drainerAt := s.deploy(hostile.DrainerMetaData.Bin)
	s.approve(s.payer, drainerAt)
	s.serve(nil)
	first, second, ofAttacker := s.invoice("10000000", s.shop()), s.invoice("20000000", s.shop()), s.invoice("30000000", s.shop())
	tag := id(ofAttacker)

	moved := s.call(s.attacker, drainerAt, append(drainer.PackDrain(s.chain.Token, s.customer(), s.shop(), units(t, first.Invoice.TransferAmount)), tag[:]...))
	// The nonce of an authorization need not be an invoice's commitment; the
	// amount attributes the payment. The submitter chooses the trailing calldata.
	auth := s.authorize(s.payer, s.shop(), units(t, second.Invoice.TransferAmount), second)
	auth.Nonce = common.HexToHash("0x0ddba11")
	signature, err := auth.Sign(contracts.TestUSDCDomain(s.chain.ChainID(), s.chain.Token), s.payer)
	if err != nil {
		t.Fatal(err)
	}
	submitted := s.call(s.attacker, s.chain.Token, append(s.token.PackTransferWithAuthorization0(auth.From, auth.To, auth.Value,
		auth.ValidAfter, auth.ValidBefore, auth.Nonce, signature.V, signature.R, signature.S), tag[:]...))
	s.expect(first, webhook.PaymentReceived, webhook.InvoicePaid)
	s.expect(second, webhook.PaymentReceived, webhook.InvoicePaid)
	s.final()
	s.wantPayments(s.paid(moved, first.Invoice.TransferAmount, &first), s.paid(submitted, second.Invoice.TransferAmount, &second))
	s.want(first, invoiceState{status: apitypes.StatusPaid, by: moved, paid: first.Invoice.TransferAmount, back: "0"})
	s.want(second, invoiceState{status: apitypes.StatusPaid, by: submitted, paid: second.Invoice.TransferAmount, back: "0"})
	s.want(ofAttacker, untouched)
	s.wantEvents()
}
