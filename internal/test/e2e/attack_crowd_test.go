package e2e

import (
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/contracts/hostile"
	"github.com/quittance/quittance/webhook"
)

// crowd is how many receivers one transaction pays.
const crowd = 500

// TestExtraPaidTogether pays 500 invoices of one amount in one transaction.
func TestExtraPaidTogether(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	disperse := hostile.NewDisperse()
	disperseAt := s.deploy(hostile.DisperseMetaData.Bin)
	s.approve(s.payer, disperseAt)
	s.serve(nil)
	made := s.invoices(crowd, "10000000")
	to, amounts := make([]common.Address, crowd), make([]*big.Int, crowd)
	want := make([]listed, crowd)
	for i, m := range made {
		to[i], amounts[i] = s.shop(), units(t, m.Invoice.TransferAmount)
		s.expect(m, webhook.PaymentReceived, webhook.InvoicePaid)
	}
	hash := s.send(s.payer, disperseAt, disperse.PackDisperse(s.chain.Token, to, amounts))
	begun := time.Now()
	s.seal()
	receipt := s.mined(hash, types.ReceiptStatusSuccessful)
	s.read()
	seen := time.Since(begun)
	begun = time.Now()
	s.final()
	t.Logf("%d transfers in one transaction, %d gas: seen after %s, and final %s after their last block", crowd, receipt.GasUsed, seen, time.Since(begun))

	for i, m := range made {
		want[i] = s.paid(hash, m.Invoice.TransferAmount, &made[i])
		s.want(m, invoiceState{status: apitypes.StatusPaid, by: hash, paid: m.Invoice.TransferAmount, back: "0"})
	}
	s.wantPaymentsInAnyOrder(want)
	s.wantEvents()
}

// TestExtraDust sends the shop a thousand tiny transfers that match no invoice. They are
// recorded without delaying other payments.
func TestExtraDust(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	disperse := hostile.NewDisperse()
	disperseAt := s.deploy(hostile.DisperseMetaData.Bin)
	s.approve(s.payer, disperseAt)
	s.serve(nil)
	victim := s.invoice("10000000", s.shop())
	to, amounts := make([]common.Address, crowd), make([]*big.Int, crowd)
	for i := range to {
		to[i], amounts[i] = s.shop(), big.NewInt(1)
	}
	var want []listed
	flood := func(data []byte, from common.Address) {
		t.Helper()
		hash := s.call(s.payer, disperseAt, data)
		for range crowd {
			p := s.paid(hash, "1", nil)
			p.from = from
			want = append(want, p)
		}
	}
	begun := time.Now()
	flood(disperse.PackDisperse(s.chain.Token, to, amounts), s.customer())
	flood(disperse.PackDisperseThroughMe(s.chain.Token, to, amounts), disperseAt)
	honest := s.pay(s.payer, s.shop(), victim.Invoice.TransferAmount)
	s.expect(victim, webhook.PaymentReceived, webhook.InvoicePaid)
	want = append(want, s.paid(honest, victim.Invoice.TransferAmount, &victim))
	s.final()
	t.Logf("%d transfers of dust and a payment were final after %s", 2*crowd, time.Since(begun))

	s.want(victim, invoiceState{status: apitypes.StatusPaid, by: honest, paid: victim.Invoice.TransferAmount, back: "0"})
	begun = time.Now()
	s.wantPaymentsInAnyOrder(want)
	t.Logf("they were listed within %s", time.Since(begun))
	for p, err := range s.api().Payments(t.Context(), client.PaymentFilter{}) {
		if err != nil || p.TxHash != honest.Hex() {
			t.Fatalf("without being asked for, what is nobody's is listed: %+v, %v", p, err)
		}
	}
	s.wantEvents()
}

// invoices creates n invoices concurrently.
func (s *stage) invoices(n int, amount string) []apitypes.CreateInvoiceResponse {
	s.Helper()
	draft, made := s.draft(amount), make([]apitypes.CreateInvoiceResponse, n)
	group, ctx := errgroup.WithContext(s.Context())
	group.SetLimit(16)
	for i := range made {
		group.Go(func() (err error) {
			made[i], err = s.api().CreateInvoice(ctx, draft)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		s.Fatal(err)
	}
	for _, m := range made {
		s.wantTypes[m.ID] = []string{webhook.InvoiceCreated}
	}
	return made
}
