package e2e

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// TestExtraPreparedRefund prepares refunds of a payment, and signs and sends exactly the given
// transactions. The payer names the address of the second. quittance dev has only SQLite;
// TestIntegrationRefund has refunds prepared, named and recognised on both databases.
func TestExtraPreparedRefund(t *testing.T) {
	t.Parallel()
	w, c := startWorld(t, "--block-time", quick)
	made := w.create(w.draft("4900000"))
	tag, err := hexutil.Decode(made.OnChainInvoiceID)
	if err != nil {
		t.Fatal(err)
	}
	w.payer().mustTransfer(t, made.Invoice.MerchantAddress, "4900000", tag)
	var payment apitypes.Payment
	w.until("the payment is final", func() bool {
		list := decoded[apitypes.PaymentList](t, w.do(http.MethodGet, "/api/payments", ""), http.StatusOK)
		if len(list.Payments) == 1 {
			payment = list.Payments[0]
		}
		return payment.ConfirmedAt != 0
	})
	path := "/api/payments/" + payment.ID + "/refunds"
	first := w.prepare(path, `{"amount":"1500000","reason":"One bun"}`)
	if first.Refund.To != payment.From || len(first.Refund.Warnings) != 0 {
		t.Errorf("prepared %+v", first.Refund)
	}
	w.sendRefund(first)

	asked := w.prepare(path, `{"to":"ask_payer"}`)
	home := crypto.PubkeyToAddress(w.payer().key.PublicKey)
	home[0]++
	record := invoice.RefundRecord{
		ID: asked.Refund.ID, PaymentID: payment.ID, Payer: chain.MustAddress(payment.From), From: chain.MustAddress(payment.To), Amount: invoice.NewAmount(3_400_000),
	}
	signature, err := crypto.Sign(chain.PersonalHash(chain.RefundClaimText(w.info.Load().Chain.ChainID, record, invoice.Address(home))), w.payer().key)
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{"to": {home.Hex()}, "signature": {"0x" + hex.EncodeToString(signature)}}
	page := w.do(http.MethodPost, asked.ClaimURL, form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
	if page.status != http.StatusOK || !bytes.Contains(page.body, []byte("Your address is confirmed")) {
		t.Fatalf("the page answers %d %s", page.status, page.body)
	}
	c.kill() // prepared refunds are stored
	w.start()
	named := decoded[apitypes.RefundResponse](t, w.do(http.MethodGet, "/api/refunds/"+asked.Refund.ID, ""), http.StatusOK)
	if named.Refund.To != home.Hex() || named.Transaction == nil {
		t.Fatalf("the address is not named: %+v", named)
	}
	w.sendRefund(named)

	got := decoded[apitypes.PaymentResponse](t, w.do(http.MethodGet, "/api/payments/"+payment.ID, ""), http.StatusOK).Payment
	if got.AmountRefunded != "4900000" {
		t.Errorf("%s of the payment are refunded", got.AmountRefunded)
	}
	events := decoded[apitypes.EventList](t, w.do(http.MethodGet, "/api/events?type=payment.refunded", ""), http.StatusOK).Events
	for _, r := range []apitypes.RefundResponse{first, named} {
		found := 0
		for _, e := range events {
			if bytes.Contains(e.Event, fmt.Appendf(nil, `"preparedRefundId":%q`, r.Refund.ID)) {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%d events name %s", found, r.Refund.ID)
		}
	}
}

// prepare prepares a refund.
func (w *world) prepare(path, body string) apitypes.RefundResponse {
	w.Helper()
	return decoded[apitypes.RefundResponse](w, w.do(http.MethodPost, path, body, "Content-Type", "application/json"), http.StatusCreated)
}

// sendRefund signs and sends the transaction of a refund, and waits until it is final.
func (w *world) sendRefund(r apitypes.RefundResponse) {
	w.Helper()
	data, err := hexutil.Decode(r.Transaction.Data)
	if err != nil {
		w.Fatal(err)
	}
	receipt, err := w.merchant().send(within(w, patience), common.HexToAddress(r.Transaction.To), new(big.Int), data, nil)
	if err != nil || receipt.Status != 1 {
		w.Fatalf("send the refund: %v, %+v", err, receipt)
	}
	var got apitypes.RefundRecord
	w.until("the refund is final", func() bool {
		got = decoded[apitypes.RefundResponse](w, w.do(http.MethodGet, "/api/refunds/"+r.Refund.ID, ""), http.StatusOK).Refund
		return got.Status == apitypes.RefundConfirmed
	})
	if got.TxHash != receipt.TxHash.Hex() || got.BlockNumber != receipt.BlockNumber.Int64() || got.AmountTransferred != r.Refund.Amount {
		w.Errorf("the refund is %+v, its receipt %s in block %s", got, receipt.TxHash, receipt.BlockNumber)
	}
}

// until waits for a condition.
func (w *world) until(what string, done func() bool) {
	w.Helper()
	if err := await(within(w, 60*time.Second), done); err != nil {
		w.Fatalf("wait until %s: %v", what, err)
	}
}
