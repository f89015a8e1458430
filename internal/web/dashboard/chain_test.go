package dashboard_test

import (
	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
)

// member is a member of an object of the interface.
type member = map[string]any

// invoice creates an invoice of a merchant over 4.90 USDC, which expires in an hour. more replaces and adds members.
func (w *world) invoice(merchantID string, more member) apitypes.CreateInvoiceResponse {
	w.t.Helper()
	body := member{
		"merchantId": merchantID, "merchantAddress": acmePays.String(), "amount": "4900000", "currency": chain.USDC, "chainKey": house,
		"expiresAt": w.now().Unix() + 3600,
	}
	for name, value := range more {
		body[name] = value
	}
	var made apitypes.CreateInvoiceResponse
	w.operator.api("POST", "/api/invoices", body, &made)
	return made
}

// read returns the current state of an invoice.
func (w *world) read(id string) apitypes.Invoice {
	w.t.Helper()
	var answer apitypes.InvoiceResponse
	w.operator.api("GET", "/api/invoices/"+id, nil, &answer)
	return answer.Invoice
}

// transfer mines a transfer of minor units to the settlement address of acme's invoices, and
// the block that confirms it. It returns the transaction's hash.
func (w *world) transfer(minor string) string { return w.transferTo(acmePays, minor) }

// transferTo is transfer to another settlement address.
func (w *world) transferTo(to invoice.Address, minor string) string {
	w.t.Helper()
	amount, err := invoice.ParseAmount(minor)
	expect.OK(w.t, err)
	tx := chaintest.NewTx(chaintest.Transfer(houseToken, payer, to, amount))
	w.chain.MineAt(max(w.now().Unix(), w.chain.Head().Time+1), tx)
	w.chain.MineAt(w.chain.Head().Time + 1)
	return invoice.Hash(tx.Hash).String()
}

// payment mines a transfer, and returns its payment once it is confirmed.
func (w *world) payment(minor string) apitypes.Payment { return w.paymentTo(acmePays, minor) }

// paymentTo is payment to another settlement address.
func (w *world) paymentTo(to invoice.Address, minor string) apitypes.Payment {
	w.t.Helper()
	hash := w.transferTo(to, minor)
	var found apitypes.PaymentList
	w.await("confirmed payment of "+hash, func() bool {
		w.operator.api("GET", "/api/payments?include=unattributed&txHash="+hash, nil, &found)
		return len(found.Payments) == 1 && found.Payments[0].Status == "confirmed"
	})
	return found.Payments[0]
}

// attribute attributes a payment to an invoice at once, as maria's program does.
func (w *world) attribute(paymentID, invoiceID string) {
	w.t.Helper()
	w.operator.api("POST", "/api/payments/"+paymentID+"/attribution", apitypes.AttributePaymentRequest{InvoiceID: invoiceID, By: "maria"}, nil)
}

// paid creates an invoice of acme, and returns it once it is paid in full.
func (w *world) paid(more member) apitypes.Invoice {
	w.t.Helper()
	made := w.invoice("acme", more)
	w.payment(w.read(made.ID).TransferAmount)
	w.await("paid invoice", func() bool { return w.read(made.ID).Status == "paid" })
	return w.read(made.ID)
}
