package api

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // the image has no files but the program's

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/spelling"
)

// query reads the parameters of a request and keeps the first error.
type query struct {
	values url.Values
	err    error
	none   bool // no object can match the filters, which are not looked up then: not every text is valid in a database
}

// parseQuery returns the query, which checkParameters has accepted. For a merchant's
// principal, the parameter merchantId is that merchant.
func parseQuery(r *http.Request) *query {
	q := &query{values: r.URL.Query()}
	named := q.values.Get("merchantId")
	own, err := ownMerchant(r.Context(), named)
	switch {
	case err != nil:
		q.err = err
	case own != named:
		q.values.Set("merchantId", own)
	}
	return q
}

// parsePublicQuery returns the query of a request without a principal.
func parsePublicQuery(r *http.Request) *query { return &query{values: r.URL.Query()} }

// reject records an error of a parameter, such as "must be a number", unless one is recorded already.
func (q *query) reject(name, what string, args ...any) {
	if q.err == nil {
		q.err = parameterError(name, what, args...)
	}
}

// get returns a parameter and whether it is present.
func (q *query) get(name string) (string, bool) {
	return q.values.Get(name), q.values.Has(name)
}

// set returns the values of a parameter that is a set of known values, separated by commas or in repeated parameters.
// It normalizes the parameter in q, so that equal sets have equal scopes.
func (q *query) set(name string, known ...string) []string {
	given, ok := q.values[name]
	if !ok {
		return nil
	}
	values := strings.Split(strings.Join(given, ","), ",")
	for _, value := range values {
		if !slices.Contains(known, value) {
			q.reject(name, "must be of %s, with commas between; it has %.40q", strings.Join(known, ", "), value)
		}
	}
	slices.Sort(values)
	q.values[name] = slices.Compact(values)
	return q.values[name]
}

// flag returns the value of a parameter that is true or false, and whether it is present.
func (q *query) flag(name string) (value, ok bool) {
	text, ok := q.get(name)
	if ok && text != "true" && text != "false" {
		q.reject(name, "must be true or false; it is %.40q", text)
	}
	return text == "true", ok
}

// limit returns the maximum number of elements of the page.
func (q *query) limit() int {
	s, ok := q.get("limit")
	if !ok {
		return DefaultPage
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > MaxPage || s != strconv.Itoa(n) {
		q.reject("limit", "must be an integer from 1 to %d, without sign or leading zero", MaxPage)
	}
	return n
}

// scope returns the list and its filters as a text, to which cursors are bound. It names
// the given filters even if they are absent, and the others if they are present.
func (q *query) scope(list string, filters ...string) string {
	for _, name := range filters {
		list += fmt.Sprintf(" %s=%q", name, q.values[name])
	}
	for _, name := range slices.Sorted(maps.Keys(q.values)) {
		if !slices.Contains(filters, name) && !slices.Contains(notFilters, name) {
			list += fmt.Sprintf(" %s=%q", name, q.values[name])
		}
	}
	return list
}

// notFilters are the parameters of lists that may differ from page to page.
var notFilters = []string{"limit", "cursor", "after", "candidates"}

const wrongCursor = "must be the nextCursor of an answer to a request with the same filters"

// cursor returns the sort key of the last element of the previous page, or "" for the first page.
func (q *query) cursor(scope string) string {
	s, ok := q.get("cursor")
	if !ok {
		return ""
	}
	key, ok := parseCursor(scope, s)
	if !ok {
		q.reject("cursor", wrongCursor)
	}
	return key
}

// merchantID returns the merchant to list for, or "" for all. If the parameter is not a valid id, nothing matches.
func (q *query) merchantID() string {
	id, ok := q.get("merchantId")
	q.none = q.none || ok && !invoice.ValidMerchantID(id)
	return id
}

// id returns a parameter that is an id with a prefix, or "". It rejects other texts, because not every text is valid in a
// database.
func (q *query) id(name, prefix, of string) string {
	id, ok := q.get(name)
	if ok && (!strings.HasPrefix(id, prefix) || len(id) > maxObjectID || !isVisibleASCII(id)) {
		q.reject(name, "must be the id of %s", of)
	}
	return id
}

// invoiceID returns the filter by an invoice, or "". Nothing matches a malformed one.
func (q *query) invoiceID() string {
	id, ok := q.get("invoiceId")
	q.none = q.none || ok && (!strings.HasPrefix(id, invoice.PrefixInvoice) || !isVisibleASCII(id))
	return id
}

// chainKey returns the filter by a chain, or "".
func (q *query) chainKey(chains map[string]chain.Chain) string {
	key, ok := q.get("chainKey")
	if _, known := chains[key]; ok && !known {
		q.reject("chainKey", "must name a chain that the service is configured with; it is %.40q", key)
	}
	return key
}

// timezone returns the time zone that the parameter timezone names, or UTC.
func (q *query) timezone() *time.Location {
	name, ok := q.get("timezone")
	if !ok {
		return time.UTC
	}
	location, ok := invoice.ParseTimezone(name)
	if !ok {
		q.reject("timezone", "must be a name of the IANA time zone database, such as Europe/Berlin; it is %.40q", name)
		return time.UTC
	}
	return location
}

// instant returns a required time: Unix seconds, or a date, for which it returns the begin of the day in a time zone.
func (q *query) instant(name string, location *time.Location) time.Time {
	text, ok := q.get(name)
	if !ok {
		q.reject(name, "is required")
		return time.Time{}
	}
	if day := invoice.DayStart(text, location); !day.IsZero() {
		if day.Unix() < 0 {
			q.reject(name, "must not begin before 1970 in UTC; it is %s", text)
		}
		return day
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || text != strconv.FormatInt(n, 10) || invoice.Unix(n).Unix() != n {
		q.reject(name, "must be Unix seconds or a date such as 2026-11-30; it is %.40q", text)
	}
	return invoice.Unix(n)
}

// otherMerchant is the detail of a request for another merchant than the key's.
const otherMerchant = "The key belongs to one merchant, and the request names another as merchantId; leave it out."

// ownMerchant returns the merchant that a request is about: the one that it names or, if it names no merchant, the
// principal's. It refuses a merchant other than the principal's, whether or not it exists.
func ownMerchant(ctx context.Context, named string) (string, error) {
	p := access.FromContext(ctx)
	if named == "" {
		named = p.MerchantID
	}
	if !p.Sees(named) {
		return "", problemf(apitypes.CodeForbidden, otherMerchant)
	}
	return named, nil
}

// idempotencyScope returns the scope of the idempotency keys of a principal, so that keys of two owners never collide.
// For the operator it does not depend on the merchant: a key that is reused for another merchant is a mismatch.
func idempotencyScope(p access.Principal) string {
	if p.MerchantID == "" {
		return ""
	}
	return "merchant " + p.MerchantID
}

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

// checkParameters refuses a query that does not parse, that has a parameter which is not among known, or that has one
// of them twice. include may be repeated. It also refuses a condition that does not hold for any object, because objects
// have no ETag (RFC 9110, section 13.1.1).
func checkParameters(r *http.Request, known []string) error {
	if match := r.Header.Get("If-Match"); match != "" && match != "*" {
		return invalidField("If-Match", "names an ETag, and objects have none; leave it out")
	}
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
