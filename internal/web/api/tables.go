package api

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/webhooks"
)

// invoiceTable returns the columns of invoices.
func (a *API) invoiceTable() *table[invoice.Invoice] {
	return tableOf([]string{
		"id", "merchantId", "status", "exception", "chainKey", "currency", "amount", "amountDecimal", "amountPaid", "amountPaidDecimal",
		"amountRefunded", "amountRefundedDecimal", "merchantAddress", "createdAt", "expiresAt", "settledAt", "settledTxHash",
		"reference", "customerId", "customerEmail", "description", "metadata", "depositAddress", "sweptTxHash",
	}, func(inv invoice.Invoice, at func(time.Time) string) []string {
		units := func(amount invoice.Amount) string { return a.units(amount, inv.ChainKey, inv.Currency) }
		j := apiconv.Invoice(inv)
		return []string{
			inv.ID, inv.MerchantID, string(inv.Status), string(inv.Exception), inv.ChainKey, inv.Currency, inv.Amount.String(), units(inv.Amount),
			inv.AmountPaid.String(), units(inv.AmountPaid), inv.AmountRefunded.String(), units(inv.AmountRefunded),
			j.MerchantAddress, at(inv.CreatedAt), at(inv.ExpiresAt), at(inv.SettledAt), j.SettledTxHash,
			inv.Details.Reference, inv.Details.Customer.ID, inv.Details.Customer.Email, inv.Details.Description, metadataCell(inv.Details.Metadata),
			j.DepositAddress, j.SweptTxHash,
		}
	})
}

// metadataCell returns metadata as a JSON object in the order of the keys, or "". It escapes
// semicolons, so that harmless does not change the cell of a file with commas.
func metadataCell(pairs map[string]string) string {
	if len(pairs) == 0 {
		return ""
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(pairs); err != nil {
		panic(err) // texts can be encoded
	}
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), ";", `\u003b`)
}

// references returns the references of the invoices of elements, by invoice id.
func references[T any](ctx context.Context, a *API, elements []T, invoiceID func(T) string) (map[string]string, error) {
	var ids []string
	for _, e := range elements {
		if id := invoiceID(e); id != "" {
			ids = append(ids, id)
		}
	}
	found, err := a.conf.Reader.References(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read references: %w", err)
	}
	return found, nil
}

// paymentTable returns the columns of payments.
func (a *API) paymentTable() *table[ledger.PaymentRow] {
	return &table[ledger.PaymentRow]{[]string{
		"id", "status", "invoiceId", "merchantId", "chainKey", "txHash", "currency", "amount", "amountDecimal",
		"amountRefunded", "amountRefundedDecimal", "from", "to", "blockNumber", "confirmedAt", "attribution", "reference",
	}, func(ctx context.Context, payments []ledger.PaymentRow, at func(time.Time) string) ([][]string, error) {
		refunded, err := a.conf.Reader.AmountsRefunded(ctx, db.Each(payments, func(p ledger.PaymentRow) string { return p.ID }))
		if err != nil {
			return nil, fmt.Errorf("read refunds: %w", err)
		}
		reference, err := references(ctx, a, payments, func(p ledger.PaymentRow) string { return p.InvoiceID })
		if err != nil {
			return nil, err
		}
		return db.Each(payments, func(p ledger.PaymentRow) []string {
			back := refunded[p.ID]
			units := func(amount invoice.Amount) string { return a.units(amount, p.ChainKey, p.Currency) }
			j := apiconv.Payment(p.Payment, false)
			return []string{
				p.ID, string(p.Status.Shown()), p.InvoiceID, p.MerchantID, p.ChainKey, j.TxHash, p.Currency, p.Amount.String(), units(p.Amount),
				back.String(), units(back), j.From, j.To, strconv.FormatUint(p.BlockNumber, 10), at(p.ConfirmedAt), string(p.Method),
				reference[p.InvoiceID],
			}
		}), nil
	}}
}

// refundTable returns the columns of refunds.
func (a *API) refundTable() *table[invoice.RefundRecord] {
	return &table[invoice.RefundRecord]{[]string{
		"id", "status", "paymentId", "invoiceId", "merchantId", "chainKey", "txHash", "currency", "amount", "amountDecimal",
		"amountTransferred", "amountTransferredDecimal", "from", "to", "reason", "createdAt", "confirmedAt", "reference",
	}, func(ctx context.Context, refunds []invoice.RefundRecord, at func(time.Time) string) ([][]string, error) {
		reference, err := references(ctx, a, refunds, func(r invoice.RefundRecord) string { return r.InvoiceID })
		if err != nil {
			return nil, err
		}
		return db.Each(refunds, func(r invoice.RefundRecord) []string { return append(a.refundCells(r, at), reference[r.InvoiceID]) }), nil
	}}
}

// refundCells returns the cells of a refund, without the reference of its invoice.
func (a *API) refundCells(r invoice.RefundRecord, at func(time.Time) string) []string {
	now := a.conf.RefundNow()
	r.Status = r.StatusAt(now)
	j := apiconv.RefundRecord(r, now)
	amount, transferred, transferredUnits := r.Amount, "", ""
	if !r.Prepared() {
		amount = r.Transfer.Amount
	}
	if j.AmountTransferred != "" {
		transferred, transferredUnits = j.AmountTransferred, a.units(r.Transfer.Amount, r.ChainKey, r.Currency)
	}
	return []string{
		r.ID, string(r.Status), r.PaymentID, r.InvoiceID, r.MerchantID, r.ChainKey, j.TxHash, r.Currency, amount.String(), a.units(amount, r.ChainKey, r.Currency),
		transferred, transferredUnits, j.From, j.To, r.Reason, at(r.CreatedAt), at(fromSeconds(j.ConfirmedAt)),
	}
}

// customerTable returns the columns of customers.
func customerTable() *table[ledger.Customer] {
	return tableOf([]string{"customer", "merchantId", "id", "email", "newestInvoiceId", "invoicedAt"}, func(c ledger.Customer, at func(time.Time) string) []string {
		return []string{c.Key(), c.MerchantID, c.ID, c.Email, c.NewestInvoice, at(c.InvoicedAt)}
	})
}

// paymentLinkTable returns the columns of payment links.
func (a *API) paymentLinkTable() *table[invoice.PaymentLink] {
	return tableOf([]string{
		"id", "merchantId", "slug", "url", "title", "description", "chainKey", "currency", "amount", "amountDecimal", "minAmount", "minAmountDecimal",
		"maxAmount", "maxAmountDecimal", "merchantAddress", "expiresIn", "archived", "createdAt", "changedAt",
	}, func(l invoice.PaymentLink, at func(time.Time) string) []string {
		units := func(minor string, amount invoice.Amount) string {
			if minor == "" {
				return ""
			}
			return a.units(amount, l.ChainKey, l.Currency)
		}
		j := apiconv.PaymentLink(l, a.conf.PublicURL)
		return []string{
			l.ID, l.MerchantID, l.Slug, j.URL, l.Title, l.Description, l.ChainKey, l.Currency, j.Amount, units(j.Amount, l.Amount),
			j.MinAmount, units(j.MinAmount, l.Minimum), j.MaxAmount, units(j.MaxAmount, l.Maximum), j.MerchantAddress,
			strconv.FormatInt(j.ExpiresIn, 10), strconv.FormatBool(l.Archived), at(l.CreatedAt), at(l.ChangedAt),
		}
	})
}

// eventTable returns the columns of events.
func eventTable() *table[webhooks.EventRow] {
	return tableOf([]string{
		"id", "type", "createdAt", "merchantId", "invoiceId", "deliveryId", "deliveryStatus", "attempts", "nextAttemptAt", "finishedAt",
	}, func(e webhooks.EventRow, at func(time.Time) string) []string {
		row := []string{e.ID, string(e.Type), at(e.CreatedAt), e.MerchantID, e.InvoiceID, "", "", "", "", ""}
		if d := EventRecord(e).Delivery; d != nil {
			copy(row[5:], []string{d.ID, string(d.Status), strconv.FormatInt(int64(d.Attempts), 10), at(fromSeconds(d.NextAttemptAt)), at(fromSeconds(d.FinishedAt))})
		}
		return row
	})
}

// fromSeconds returns the time of Unix seconds, or the zero time for 0.
func fromSeconds(n apitypes.Time) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return invoice.Unix(n)
}
