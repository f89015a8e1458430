package api

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/spelling"
)

// invoiceFilter parses the filter of invoices.
func (q *query) invoiceFilter() ledger.InvoiceFilter {
	f := ledger.InvoiceFilter{MerchantID: q.merchantID(), Status: invoice.Status(one(q, "status", invoice.Statuses))}
	f.Customer = q.customer(f.MerchantID)
	if text, ok := q.get("reference"); ok {
		f.Reference = text
		q.none = q.none || invoice.CheckLabel("reference", text) != nil
	}
	for _, name := range slices.Sorted(maps.Keys(q.values)) {
		if key := metadataKey(name); key != "" {
			f.Metadata = append(f.Metadata, ledger.MetadataPair{Key: key, Value: q.values.Get(name)})
			q.none = q.none || invoice.Details{Metadata: map[string]string{key: q.values.Get(name)}}.Check() != nil
		}
	}
	if len(f.Metadata) > MaxMetadataFilters {
		q.reject("metadata", "must be at most %d pairs; there are %d", MaxMetadataFilters, len(f.Metadata))
	}
	f.Exception = invoice.Exception(one(q, "exception", invoice.Exceptions))
	f.Amount = parsed(q, "amount", invoice.ParseAmount)
	f.To = parsed(q, "to", chain.ParseAddress)
	f.Created = q.span("createdAfter", "createdBefore")
	return f
}

// paymentFilter parses the filter of payments.
func (q *query) paymentFilter(chains map[string]chain.Chain) ledger.PaymentFilter {
	return ledger.PaymentFilter{
		MerchantID: q.merchantID(), ChainKey: q.chainKey(chains), InvoiceID: q.invoiceID(),
		TxHash: parsed(q, "txHash", invoice.ParseHash), From: parsed(q, "from", chain.ParseAddress), To: parsed(q, "to", chain.ParseAddress),
		Amount: parsed(q, "amount", invoice.ParseAmount), Confirmed: q.span("confirmedAfter", "confirmedBefore"),
	}
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

// span returns the span of time between two parameters: the first is in it, the second is not.
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

// ownCode maps parameters to their error codes, if not invalid_field.
var ownCode = map[string]apitypes.ErrorCode{
	"status":   apitypes.CodeInvalidStatus,
	"chainKey": apitypes.CodeInvalidChain,
}

// parameterError returns the error of a parameter, such as "must be a number".
func parameterError(name, what string, args ...any) error {
	if code, ok := ownCode[name]; ok {
		return problemf(code, name+" "+what+".", args...)
	}
	return invalidField(name, what, args...)
}

// checkParameters refuses a query that does not parse, that has a parameter which is not
// among known, or that has one of them twice. include may be repeated.
func checkParameters(r *http.Request, known []string) error {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return invalidField("query", "does not parse: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if name == "" {
			return invalidField("query", "has a parameter without a name")
		}
		if !slices.Contains(known, name) && (metadataKey(name) == "" || !slices.Contains(known, "metadata[key]")) {
			return unknownParameter(name, known)
		}
		if len(values[name]) > 1 && name != "include" {
			return parameterError(name, "must occur once")
		}
	}
	return nil
}

// maxUnknown bounds an unknown parameter's name in an error, in characters.
const maxUnknown = 40

// unknownParameter returns the error of a parameter that the operation does not have.
func unknownParameter(name string, known []string) error {
	field := fmt.Sprintf("%.*s", maxUnknown, strings.ToValidUTF8(name, "?"))
	const what = "is not a parameter of this operation"
	switch similar := spelling.Nearest(name, known); {
	case similar != "":
		return invalidField(field, what+"%s", spelling.DidYouMean(similar))
	case len(known) == 0:
		return invalidField(field, what+", which has none")
	}
	return invalidField(field, what+", which has %s", strings.Join(known, ", "))
}
