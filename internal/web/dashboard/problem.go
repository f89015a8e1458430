package dashboard

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/web/checkout/locale"
)

var (
	// fieldPath matches the path of a field of the interface, such as lineItems[2].amount.
	fieldPath = regexp.MustCompile(`\b[a-z]+(?:[A-Z][a-z]+)+(?:\[\w*\])?(?:\.[a-zA-Z]+)*`)
	// unixTime matches a time in the unit of the interface.
	unixTime = regexp.MustCompile(`\b[12]\d{9}\b`)
	// stamp matches a time in UTC.
	stamp = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	// amount matches an amount of minor units in the details of amountFields.
	amount  = regexp.MustCompile(`\b(?:up to|is) \d+\b`)
	capital = regexp.MustCompile(`[A-Z]`)
)

// amountFields are the fields of which a detail names amounts.
var amountFields = []string{"lineItems", "minAmount", "maxAmount"}

// quoting are the codes of details that name people, times and reasons.
var quoting = []apitypes.ErrorCode{apitypes.CodeAlreadyDecided, apitypes.CodeAlreadyAttributed, apitypes.CodeRefundSubmitted}

// sameText are codes that share the text of another one.
var sameText = map[apitypes.ErrorCode]apitypes.ErrorCode{
	apitypes.CodeNoStagedSecret: apitypes.CodeItemChanged, apitypes.CodeIdempotencyInProgress: apitypes.CodeIdempotencyMismatch,
	apitypes.CodeDraftDeleted: apitypes.CodeIdempotencyMismatch,
}

// labels are the texts of the labels of fields in forms and filters.
var labels = map[string]string{
	"amount": "invoices.amount", "cancelUrl": "linkForm.cancelUrl", "color": "settings.color", "customer.email": "invoiceForm.customerEmail",
	"customer.id": "invoiceForm.customerId", "description": "invoice.description", "email": "customers.email", "embedOrigins": "settings.origins",
	"expiresAt": "invoice.expires", "expiresIn": "linkForm.expires", "headers": "webhook.headers", "lineItem": "linkForm.lineItem",
	"maxAmount": "linkForm.most", "merchantAddress": "invoice.address", "minAmount": "linkForm.least", "month": "statement.month", "name": "keys.name",
	"q": "search.label", "reference": "invoices.reference", "referencePrefix": "linkForm.prefix", "returnHosts": "settings.hosts",
	"returnUrl": "invoiceForm.returnUrl", "slug": "links.slug", "statement": "settings.statement", "supportContact": "settings.contact",
	"timezone": "settings.timezone", "title": "links.for", "to": "invoice.address", "tolerance": "invoice.tolerance", "url": "webhook.url",
}

// explain returns what a problem means for people, in their language. A detail that no text replaces, or that a text
// includes, is in English: in other languages it is introduced as the service's answer.
func (v *visit) explain(p apitypes.Problem) string {
	if strings.Contains(p.Detail, invoice.ErrAmountSyntax.Error()) {
		return v.text.T("amount.error.syntax", nil)
	}
	answer := v.inPlainWords(p)
	if v.text.Lang() != texts().English().Lang() {
		answer = v.text.T("problem.answer", locale.Values{"Detail": answer})
		if label := labels[fieldOf(p)]; label != "" {
			answer = v.text.T(label, nil) + " – " + answer
		}
	}
	id := "problem." + string(cmp.Or(sameText[p.Code], p.Code))
	if text := v.text.T(id, locale.Values{"Detail": answer}); text != id {
		return text
	}
	return answer
}

// inPlainWords returns the detail of a problem with fields as words, times in the page's zone, and amounts in units of a
// token. It does not change what people wrote: quoted text, and the reasons of decisions.
func (v *visit) inPlainWords(p apitypes.Problem) string {
	if slices.Contains(quoting, p.Code) {
		first := stamp.FindString(p.Detail)
		at, err := time.Parse(time.RFC3339, first)
		if err != nil {
			return p.Detail
		}
		return strings.Replace(p.Detail, first, v.text.ClockIn(at, v.Zone()), 1)
	}
	phrases := strings.NewReplacer("Unix seconds or a date", "a date", "Unix seconds", "a date and a time")
	field, detail := fieldOf(p), phrases.Replace(p.Detail)
	begin := ""
	if what, ok := strings.CutPrefix(detail, field+" "); ok && field != "" {
		begin, detail = inWords(field)+" ", what
		begin = strings.ToUpper(begin[:1]) + begin[1:]
	}
	parts := strings.Split(detail, `"`)
	for i := 0; i < len(parts); i += 2 {
		parts[i] = v.inUnits(field, fieldPath.ReplaceAllStringFunc(parts[i], inWords))
	}
	return begin + strings.Join(parts, `"`)
}

// fieldOf returns the field that a problem is about, or "".
func fieldOf(p apitypes.Problem) string {
	if name, rest, _ := strings.Cut(p.Detail, " "); p.Field == "" && strings.HasPrefix(rest, "must ") {
		return name // a parameter
	}
	return p.Field
}

// inUnits returns a text about a field with its amounts in units of a token, or its times in the page's zone.
func (v *visit) inUnits(field, text string) string {
	if slices.Contains(amountFields, field) {
		return amount.ReplaceAllStringFunc(text, func(found string) string {
			at := strings.LastIndex(found, " ") + 1
			return found[:at] + v.major(found[at:])
		})
	}
	return unixTime.ReplaceAllStringFunc(text, func(seconds string) string {
		n, err := strconv.ParseInt(seconds, 10, 64)
		if err != nil {
			return seconds
		}
		return v.text.ClockIn(clock.Unix(n), v.Zone())
	})
}

// inWords returns the path of a field as words, such as line item 3 amount.
func inWords(path string) string {
	var all []string
	for name := range strings.SplitSeq(path, ".") {
		name, index, _ := strings.Cut(strings.TrimSuffix(name, "]"), "[")
		words := strings.ToLower(capital.ReplaceAllString(name, " $0"))
		if n, err := strconv.Atoi(index); err == nil {
			words = fmt.Sprint(singular.Replace(words), " ", n+1)
		} else if index != "" {
			words += " " + index
		}
		all = append(all, words)
	}
	return strings.ReplaceAll(strings.Join(all, " "), "url", "URL")
}

// singular changes the last words of the paths of lists.
var singular = strings.NewReplacer("addresses", "address", "items", "item", "headers", "header", "hosts", "host", "origins", "origin", "scopes", "scope", "events", "event")
