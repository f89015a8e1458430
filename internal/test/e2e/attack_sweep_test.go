package e2e

import (
	"fmt"
	"os"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/webhook"
)

// TestExtraSweepOfAnotherService sweeps deposit addresses of another service, which has the same factory and
// a merchant with the same settlement address. The amount is exactly the one that an invoice of this
// service asks for. The money has paid an invoice there, and does not pay one here.
func TestExtraSweepOfAnotherService(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.configure(nil)
	text, err := os.ReadFile(s.config)
	if err != nil {
		t.Fatal(err)
	}
	text = fmt.Appendf(text, "    depositFactory: %q\n", s.chain.DepositFactory)
	if err := os.WriteFile(s.config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s.restart()
	victim := s.invoice("10000000", s.shop())
	amount, factory := victim.Invoice.TransferAmount, contracts.NewDepositFactory()
	theirs := contracts.Sweep{Merchant: s.shop(), Id: common.Hash{7}, Token: s.chain.Token}
	deposit := contracts.DepositAddress(s.chain.DepositFactory, s.shop(), theirs.Id)

	s.pay(s.payer, deposit, amount)
	byFactory := s.call(s.attacker, s.chain.DepositFactory, factory.PackSweep([]contracts.Sweep{theirs}))
	s.pay(s.payer, deposit, amount)
	one := s.call(s.attacker, s.chain.DepositFactory, factory.PackSweepOne(theirs))
	s.pay(s.payer, deposit, amount)
	directly := s.call(s.attacker, deposit, contracts.NewDeposit().PackSweep(s.chain.Token))
	s.final()
	s.want(victim, untouched)
	swept := []listed{s.paid(byFactory, amount, nil), s.paid(one, amount, nil), s.paid(directly, amount, nil)}
	for i := range swept {
		swept[i].from = deposit
	}
	s.wantPayments(swept...)

	honest := s.pay(s.payer, s.shop(), amount)
	s.expect(victim, webhook.PaymentReceived, webhook.InvoicePaid)
	s.final()
	s.want(victim, invoiceState{status: apitypes.StatusPaid, by: honest, paid: amount, back: "0"})
	s.wantEvents()
}
