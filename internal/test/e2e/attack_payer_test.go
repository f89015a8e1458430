package e2e

import (
	"crypto/ecdsa"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/contracts/hostile"
	"github.com/quittance/quittance/internal/dev/devchain"
	"github.com/quittance/quittance/webhook"
)

// authorize returns an EIP-3009 authorization of the payer with an invoice's commitment as
// its nonce.
func (s *stage) authorize(payer *ecdsa.PrivateKey, to common.Address, amount *big.Int, made apitypes.CreateInvoiceResponse) contracts.Authorization {
	return contracts.Authorization{
		From: devchain.Address(payer), To: to, Value: amount, ValidAfter: new(big.Int),
		ValidBefore: new(big.Int).SetUint64(s.contractTerms(made).ExpiresAt + 1), Nonce: id(made),
	}
}

// submit sends a payer's authorization to the token in the attacker's
// transaction, for the next block.
func (s *stage) submit(payer *ecdsa.PrivateKey, auth contracts.Authorization) common.Hash {
	s.Helper()
	hash, err := s.chain.TransferWithAuthorization(s.Context(), s.attacker, payer, auth)
	if err != nil {
		s.Fatal(err)
	}
	return hash
}

// TestExtraStolenNonce lets an attacker use the nonces of customers' authorizations, which are
// public. A nonce is unique only for its authorizer.
func TestExtraStolenNonce(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	attacker := devchain.Address(s.attacker)
	s.pay(s.payer, attacker, "1000000000")
	s.serve(nil)
	const amount = "10000000"
	sum := units(t, amount)
	var made [6]apitypes.CreateInvoiceResponse
	for i := range made {
		made[i] = s.invoice(amount, s.shop())
	}
	toHimself, nearlyNothing, frontRun, twoPayers, cancelled, nothing := made[0], made[1], made[2], made[3], made[4], made[5]
	submitted := func(hash common.Hash) common.Hash {
		t.Helper()
		s.seal()
		s.mined(hash, types.ReceiptStatusSuccessful)
		return hash
	}
	fromAttacker := func(p listed) listed { p.from = attacker; return p }
	var want []listed

	// The attacker pays an own account, and one whole unit to the shop.
	submitted(s.submit(s.attacker, s.authorize(s.attacker, attacker, sum, toHimself)))
	penny := submitted(s.submit(s.attacker, s.authorize(s.attacker, s.shop(), big.NewInt(1), nearlyNothing)))
	want = append(want, fromAttacker(s.paid(penny, "1", &nearlyNothing)))
	submitted(s.submit(s.attacker, s.authorize(s.attacker, s.shop(), new(big.Int), nothing)))

	// The attacker submits the customer's authorization before the registry does. It is
	// still the customer's payment, and is valid once.
	auth := s.authorize(s.payer, s.shop(), sum, frontRun)
	overtaken := submitted(s.submit(s.payer, auth))
	want = append(want, s.paid(overtaken, amount, &frontRun))
	late, err := s.chain.PayWithAuthorization(t.Context(), s.attacker, s.payer, s.contractTerms(frontRun))
	if err != nil {
		t.Fatal(err)
	}
	again := s.submit(s.payer, auth)
	s.seal()
	s.mined(late, types.ReceiptStatusFailed)
	s.mined(again, types.ReceiptStatusFailed)

	// Two payers use one nonce.
	first := submitted(s.submit(s.attacker, s.authorize(s.attacker, s.shop(), sum, twoPayers)))
	second := submitted(s.submit(s.payer, s.authorize(s.payer, s.shop(), sum, twoPayers)))
	want = append(want, fromAttacker(s.paid(first, amount, &twoPayers)), s.paid(second, amount, &twoPayers))

	// A cancelled authorization pays no invoice.
	dead := s.authorize(s.payer, s.shop(), sum, cancelled)
	signature, err := dead.SignCancel(contracts.TestUSDCDomain(s.chain.ChainID(), s.chain.Token), s.payer)
	if err != nil {
		t.Fatal(err)
	}
	s.call(s.attacker, s.chain.Token, s.token.PackCancelAuthorization0(dead.From, dead.Nonce, signature.Bytes()))
	refused := s.submit(s.payer, dead)
	s.seal()
	s.mined(refused, types.ReceiptStatusFailed)
	s.final()

	s.wantPayments(want...)
	s.want(toHimself, untouched)
	s.want(nearlyNothing, invoiceState{status: apitypes.StatusOpen, paid: "1", back: "0"}) // dust is no exception
	s.want(frontRun, invoiceState{status: apitypes.StatusPaid, by: overtaken, paid: amount, back: "0"})
	s.want(twoPayers, invoiceState{status: apitypes.StatusPaid, by: first, paid: "20000000", back: "0", exception: apitypes.ExceptionDuplicate})
	s.want(cancelled, untouched)
	s.want(nothing, untouched)
	s.expect(nearlyNothing, webhook.PaymentReceived)
	s.expect(frontRun, webhook.PaymentReceived, webhook.InvoicePaid)
	s.expect(twoPayers, webhook.PaymentReceived, webhook.PaymentReceived, webhook.InvoicePaid)

	// The customers' own authorizations with the nonces remain valid.
	hash, err := s.chain.PayWithAuthorization(t.Context(), s.attacker, s.payer, s.contractTerms(toHimself))
	if err != nil {
		t.Fatal(err)
	}
	through := submitted(hash)
	directly := submitted(s.submit(s.payer, s.authorize(s.payer, s.shop(), sum, nearlyNothing)))
	s.expect(toHimself, webhook.PaymentReceived, webhook.InvoicePaid)
	s.expect(nearlyNothing, webhook.PaymentReceived, webhook.InvoicePaid)
	s.final()
	s.wantPayments(append(want, s.paid(through, amount, &toHimself), s.paid(directly, amount, &nearlyNothing))...)
	s.want(toHimself, invoiceState{status: apitypes.StatusPaid, by: through, paid: amount, back: "0"})
	s.want(nearlyNothing, invoiceState{status: apitypes.StatusPaid, by: directly, paid: "10000001", back: "0"})
	s.wantEvents()
}

// TestExtraThirdParty lets an account move the tokens of others, who approved it. The payer is
// the owner of the tokens, not the sender of the transaction.
func TestExtraThirdParty(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	drainer := hostile.NewDrainer()
	drainerAt := s.deploy(hostile.DrainerMetaData.Bin)
	s.approve(s.payer, drainerAt)
	s.approve(s.payer, devchain.Address(s.attacker))
	s.approve(s.till, drainerAt)
	s.serve(nil)
	byAmount, byTag := s.invoice("10000000", s.shop()), s.invoice("20000000", s.shop())
	tag := id(byTag)
	drain := func(from, to common.Address, amount string) common.Hash {
		t.Helper()
		return s.call(s.attacker, drainerAt, drainer.PackDrain(s.chain.Token, from, to, units(t, amount)))
	}
	first := drain(s.customer(), s.shop(), byAmount.Invoice.TransferAmount)
	second := s.call(s.attacker, s.chain.Token, append(s.token.PackTransferFrom(s.customer(), s.shop(), units(t, "20000000")), tag[:]...))
	s.final()                                                // a payment that is refunded earlier covers no invoice
	drain(s.shop(), devchain.Address(s.attacker), "3000000") // a theft, not a refund
	drain(s.shop(), s.customer(), "20000000")
	s.expect(byAmount, webhook.PaymentReceived, webhook.InvoicePaid)
	s.expect(byTag, webhook.PaymentReceived, webhook.InvoicePaid, webhook.PaymentRefunded)
	s.final()
	s.wantPayments(s.paid(first, byAmount.Invoice.TransferAmount, &byAmount), s.paid(second, "20000000", &byTag))
	s.want(byAmount, invoiceState{status: apitypes.StatusPaid, by: first, paid: byAmount.Invoice.TransferAmount, back: "0"})
	s.want(byTag, invoiceState{status: apitypes.StatusPaid, by: second, paid: "20000000", back: "20000000"})
	s.wantEvents()
}

// TestExtraMerchantContract pays a settlement address that is a contract, in every way, and
// refunds from it.
func TestExtraMerchantContract(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	wallet := hostile.NewMerchantWallet()
	walletAt := s.deploy(hostile.MerchantWalletMetaData.Bin)
	treasury := common.HexToAddress("0x0000000000000000000000000000000000007ea5")
	s.serve(nil)
	var made [4]apitypes.CreateInvoiceResponse
	for i, amount := range []string{"10000000", "20000000", "30000000", "40000000"} {
		made[i] = s.invoice(amount, walletAt)
		s.expect(made[i], webhook.PaymentReceived, webhook.InvoicePaid)
	}
	plain, registry, authorized, collected := made[0], made[1], made[2], made[3]

	var tx [4]common.Hash
	tx[0] = s.pay(s.payer, walletAt, plain.Invoice.TransferAmount)
	var err error
	if tx[1], err = s.chain.Pay(t.Context(), s.payer, s.contractTerms(registry)); err != nil {
		t.Fatal(err)
	}
	s.seal()
	if tx[2], err = s.chain.PayWithAuthorization(t.Context(), s.attacker, s.payer, s.contractTerms(authorized)); err != nil {
		t.Fatal(err)
	}
	s.seal()
	for _, hash := range tx[1:3] {
		s.mined(hash, types.ReceiptStatusSuccessful)
	}
	// The contract collects the last payment itself, and forwards most of it in
	// the same transaction.
	auth := s.authorize(s.payer, walletAt, units(t, collected.Invoice.Amount), collected)
	signature, err := auth.SignReceive(contracts.TestUSDCDomain(s.chain.ChainID(), s.chain.Token), s.payer)
	if err != nil {
		t.Fatal(err)
	}
	tx[3] = s.call(s.attacker, walletAt, wallet.PackCollect(s.chain.Token, auth.From, auth.Value, auth.ValidBefore, auth.Nonce,
		signature.Bytes(), treasury, units(t, "39999999")))

	// It refunds two payments once they are final. A payment that is refunded earlier does not cover
	// the invoice.
	s.final()
	for _, amount := range []string{"20000000", "30000000"} {
		s.call(s.attacker, walletAt, wallet.PackSend(s.chain.Token, s.customer(), units(t, amount)))
	}
	s.expect(registry, webhook.PaymentRefunded)
	s.expect(authorized, webhook.PaymentRefunded)
	s.final()

	var want []listed
	refunded := []string{"0", "20000000", "30000000", "0"}
	for i := range made {
		amount := made[i].Invoice.Amount
		if i == 0 {
			amount = plain.Invoice.TransferAmount
		}
		want = append(want, s.paid(tx[i], amount, &made[i]))
		s.want(made[i], invoiceState{status: apitypes.StatusPaid, by: tx[i], paid: amount, back: refunded[i]})
	}
	s.wantPayments(want...)
	s.awaitStatus(plain, contracts.StatusClosed)
	s.awaitStatus(authorized, contracts.StatusPaid)
	s.wantEvents()
}
