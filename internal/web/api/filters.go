package api

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// invoiceFilter parses the filter of invoices. possible is false if no invoice can match.
func (q *query) invoiceFilter() (f ledger.InvoiceFilter, possible bool) {
	f.MerchantID, possible = q.merchantID()
	f.Status = invoice.Status(one(q, "status", invoice.Statuses))
	customer, valid := q.customer(f.MerchantID)
	f.Customer, possible = customer, possible && valid
	if text, ok := q.get("reference"); ok {
		f.Reference = text
		possible = possible && invoice.CheckLabel("reference", text) == nil
	}
	for _, name := range slices.Sorted(maps.Keys(q.values)) {
		if key := metadataKey(name); key != "" {
			f.Metadata = append(f.Metadata, ledger.MetadataPair{Key: key, Value: q.values.Get(name)})
			possible = possible && invoice.Details{Metadata: map[string]string{key: q.values.Get(name)}}.Check() == nil
		}
	}
	if len(f.Metadata) > MaxMetadataFilters {
		q.reject("metadata", "must be at most %d pairs; there are %d", MaxMetadataFilters, len(f.Metadata))
	}
	f.Exception = invoice.Exception(one(q, "exception", invoice.Exceptions))
	f.Amount = parsed(q, "amount", invoice.ParseAmount)
	f.To = parsed(q, "to", chain.ParseAddress)
	f.Created = q.span("createdAfter", "createdBefore")
	return f, possible
}

// paymentFilter parses the filter of payments. possible is false if no payment can match.
func (q *query) paymentFilter(chains map[string]chain.Chain) (f ledger.PaymentFilter, possible bool) {
	f.MerchantID, possible = q.merchantID()
	if key, ok := q.get("chainKey"); ok {
		f.ChainKey = key
		if _, known := chains[key]; !known {
			q.reject("chainKey", "must name a chain that the service is configured with; it is %.40q", key)
		}
	}
	if id, ok := q.get("invoiceId"); ok {
		f.InvoiceID = id
		possible = possible && strings.HasPrefix(id, invoice.PrefixInvoice) && isVisibleASCII(id)
	}
	f.TxHash = parsed(q, "txHash", invoice.ParseHash)
	f.From = parsed(q, "from", chain.ParseAddress)
	f.To = parsed(q, "to", chain.ParseAddress)
	f.Amount = parsed(q, "amount", invoice.ParseAmount)
	f.Confirmed = q.span("confirmedAfter", "confirmedBefore")
	return f, possible
}

// metadataKey returns the key in a parameter such as metadata[key], or "".
func metadataKey(parameter string) string {
	key, ok := strings.CutPrefix(parameter, "metadata[")
	key, closed := strings.CutSuffix(key, "]")
	if !ok || !closed {
		return ""
	}
	return key
}

// one returns a parameter that must have one of the values, or "" if it is absent.
func one[T ~string](q *query, name string, values []T) string {
	text, ok := q.get(name)
	if ok && !slices.Contains(values, T(text)) {
		q.reject(name, "must be one of %s; it is %.40q", enumerate(values), text)
	}
	return text
}

// parsed returns a parameter as the database has it, or "" if it is absent.
func parsed[T interface{ String() string }](q *query, name string, parse func(string) (T, error)) string {
	text, ok := q.get(name)
	if !ok {
		return ""
	}
	v, err := parse(text)
	if err != nil {
		q.reject(name, "%v", err)
	}
	return v.String()
}

// span returns the span of time between two parameters: the first is in it, the second is
// not.
func (q *query) span(after, before string) db.Span {
	s := db.Span{From: q.time(after), To: q.time(before)}
	if !s.From.IsZero() && !s.To.IsZero() && !s.From.Before(s.To) {
		q.reject(before, "must be later than %s", after)
	}
	return s
}

// maxTime is the last second of the year 9999.
const maxTime = 253402300799

// time returns the time in a parameter of Unix seconds, or the zero time if it is absent.
func (q *query) time(name string) time.Time {
	text, ok := q.get(name)
	if !ok {
		return time.Time{}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > maxTime || text != strconv.FormatInt(n, 10) {
		q.reject(name, "must be Unix seconds, at most %d, without sign or leading zero", maxTime)
	}
	return invoice.Unix(n)
}
