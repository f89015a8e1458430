package e2e

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/contracts/hostile"
	"github.com/quittance/quittance/webhook"
)

// Modes in which a FeeToken logs its transfers.
const (
	feeBurning uint8 = iota
	feeSplitting
	feeSilent
)

// TestExtraFeeToken configures a token that keeps a hundredth of every transfer. The amount in
// its logs counts. The registry compares balances, and refuses payments in the token.
func TestExtraFeeToken(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	fee, registry := hostile.NewFeeToken(), contracts.NewInvoiceRegistry()
	feeAt := s.deploy(hostile.FeeTokenMetaData.Bin, fee.PackConstructor(s.customer())...)
	s.call(s.payer, feeAt, fee.PackApprove(s.chain.Registry, units(t, "1000000000")))
	s.serve(map[string]common.Address{"FEE": feeAt})
	draft := s.draft("10000000")
	draft.Currency = "FEE"
	made := s.ask(draft)
	terms := s.contractTerms(made)
	terms.Token = feeAt
	tag := id(made)

	for _, manner := range []uint8{feeBurning, feeSilent, feeSplitting} {
		s.call(s.payer, feeAt, fee.PackBehave(manner))
		s.callReverts(s.payer, s.chain.Registry, registry.PackPay(terms))
	}
	s.final()
	s.wantPayments()

	transfer := func(amount string, trailing ...byte) common.Hash {
		t.Helper()
		return s.call(s.payer, feeAt, append(fee.PackTransfer(s.shop(), units(t, amount)), trailing...))
	}
	paid := func(tx common.Hash, amount string, to *apitypes.CreateInvoiceResponse) listed {
		p := s.paid(tx, amount, to)
		p.currency = "FEE"
		return p
	}
	// After the fee, a transfer of the exact amount matches no invoice.
	short := new(big.Int).Sub(units(t, made.Invoice.TransferAmount), new(big.Int).Quo(units(t, made.Invoice.TransferAmount), big.NewInt(100)))
	plain := transfer(made.Invoice.TransferAmount)
	tagged := transfer("10000000", tag[:]...)
	s.expect(made, webhook.PaymentReceived)
	s.final()
	want := []listed{paid(plain, short.String(), nil), paid(tagged, "9900000", &made)}
	s.wantPayments(want...)
	s.want(made, invoiceState{status: apitypes.StatusOpen, paid: "9900000", back: "0", exception: apitypes.ExceptionUnderpaid})

	rest := transfer("101010", tag[:]...) // of which 100000 arrive
	s.expect(made, webhook.PaymentReceived, webhook.InvoicePaid)
	s.final()
	s.wantPayments(append(want, paid(rest, "100000", &made))...)
	s.want(made, invoiceState{status: apitypes.StatusPaid, by: rest, paid: "10000000", back: "0"})
	s.wantEvents()
}
