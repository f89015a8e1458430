package apiconv

import (
	"fmt"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// warningTexts explain the warnings.
var warningTexts = map[invoice.RefundWarning]string{
	invoice.WarnContract: "The recipient is a contract, such as a wallet of an exchange or one with several signers. " +
		"It may not credit the customer; ask for another address if in doubt.",
	invoice.WarnAccountUnknown: "No node of the chain said in time whether the recipient is a contract.",
	invoice.WarnManyInvoices: fmt.Sprintf("The account paid for at least %d different invoices of this address, as an exchange does for its customers "+
		"and a regular customer for itself. An exchange does not credit a refund; ask the payer for an address if in doubt.", invoice.ManyInvoices),
	invoice.WarnInvoicePaid:    "The invoice was paid after this refund was prepared, without the payment that is to be refunded.",
	invoice.WarnOtherRecipient: "The recipient is not the account that paid.",
	invoice.WarnExceedsRemainder: "Other refunds of the payment arrived since or are being sent, and less is left of it than this refund's amount. " +
		"Do not send it; cancel it.",
	invoice.WarnTransferDropped: "A transfer that refunds this payment was in a block that left the chain. Its transaction may still be mined: " +
		"sending another one pays twice then.",
	invoice.WarnMayBeRefunded: "A transfer out of the settlement address may have refunded this payment already. The refund cannot be sent until older blocks " +
		"are read or, after a restore, the operator of the service has checked the transfer with quittance recover transfers.",
	invoice.WarnNotMined: "This refund has expired or was canceled, and a transaction that was submitted for it is in no block. It may still be mined, so that " +
		"the amount stays reserved. Withdraw the submission once no node has the transaction.",
}

// RefundRecord returns a refund of the list, with its state at a time.
func RefundRecord(r invoice.RefundRecord, now time.Time) apitypes.RefundRecord {
	w := apitypes.RefundRecord{
		ID: r.ID, PaymentID: r.PaymentID, InvoiceID: r.InvoiceID, MerchantID: r.MerchantID, ChainKey: r.ChainKey,
		Status: apitypes.RefundStatus(r.Status), Prepared: r.Prepared(), Amount: r.Amount.String(), Currency: r.Currency,
		From: chain.Checksum(r.From), Reason: r.Reason, CreatedAt: invoice.UnixSeconds(r.CreatedAt),
		ExpiresAt: invoice.UnixSeconds(r.ExpiresAt), CanceledAt: invoice.UnixSeconds(r.CanceledAt),
	}
	if !r.To.IsZero() {
		w.To = chain.Checksum(r.To)
	}
	for _, code := range r.Warnings(now) {
		w.Warnings = append(w.Warnings, apitypes.RefundWarning{Code: apitypes.RefundWarningCode(code), Text: warningTexts[code]})
	}
	if !r.Prepared() {
		w.Amount, w.To = r.Transfer.Amount.String(), chain.Checksum(r.Transfer.To)
	}
	if r.Sent() || !r.Prepared() {
		w.TxHash, w.BlockNumber = r.Transfer.TxHash.String(), blockNumber(r.Transfer.BlockNumber)
		w.AmountTransferred, w.TransferID = r.Transfer.Amount.String(), r.Transfer.ID
		w.ConfirmedAt = invoice.UnixSeconds(r.Transfer.ConfirmedAt)
	}
	return w
}

// RefundTransaction returns the transaction that sends a prepared refund.
func RefundTransaction(r invoice.RefundRecord, chainID uint64) (*apitypes.RefundTransaction, error) {
	t := &apitypes.RefundTransaction{
		ChainKey: r.ChainKey, ChainID: int64(chainID), From: chain.Checksum(r.From), To: chain.Checksum(r.Token), Value: "0",
		Data: chain.TaggedTransfer(r.To, r.Amount, r.Tag), Link: chain.TransferLink(r.Token, chainID, r.To, r.Amount),
	}
	var err error
	t.Safe, err = chain.SafeBatch(chainID, r.CreatedAt, "Refund "+r.ID, "Refund of the payment "+r.PaymentID, r.From, r.Token, t.Data)
	return t, err
}
