package dashboard

import (
	"crypto/rand"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/web/webpage"
)

const (
	// itemRows is the number of empty rows for line items that a form adds.
	itemRows = 3
	// formLifetime is how long an invoice can be paid unless the person chooses otherwise.
	formLifetime = 7 * 24 * time.Hour
	// formTime is the layout of <input type="datetime-local">.
	formTime = "2006-01-02T15:04"
)

// fields are the typed values of a form, and their errors.
type fields struct {
	url.Values
	Errors map[string]string // by the member of the interface
	Error  string            // not of one field
}

// newFields returns the fields of a form with values.
func newFields(values url.Values) fields {
	return fields{Values: values, Errors: make(map[string]string)}
}

// member returns a trimmed text, and nil for an empty one, which removes the member.
func (f *fields) member(name string) any {
	if text := strings.TrimSpace(f.Get(name)); text != "" {
		return text
	}
	return nil
}

// creation returns the body of a request that creates an object, of the merchant that the form names, or else the page.
// It has no members to remove.
func (f *fields) creation(v *visit, body map[string]any) map[string]any {
	if body["merchantId"] = f.member("merchantId"); body["merchantId"] == nil && v.merchant != "" {
		body["merchantId"] = v.merchant
	}
	return withoutNil(body)
}

// withoutNil deletes members that are nil or objects without members.
func withoutNil(body map[string]any) map[string]any {
	maps.DeleteFunc(body, func(_ string, value any) bool {
		object, ok := value.(map[string]any)
		return value == nil || ok && len(withoutNil(object)) == 0
	})
	return body
}

// refuse shows an error of the interface at its field. It returns the error if it is of another kind.
func (f *fields) refuse(err error) error {
	var p *problem
	text, err := detail(err)
	if errors.As(err, &p) && p.Status == http.StatusForbidden {
		text, err = p.Detail, nil
	}
	f.Error = text
	return err
}

// refuseAt is refuse for a form with fields of these names, which the interface uses too.
func (f *fields) refuseAt(err error, names []string) error {
	var p *problem
	if errors.As(err, &p) && p.Status == http.StatusBadRequest && slices.Contains(names, p.Field) {
		f.Errors[p.Field] = p.Detail
		return nil
	}
	return f.refuse(err)
}

// invoiceForm is the form of a new invoice or of a draft.
type invoiceForm struct {
	fields
	Draft  string // id of the draft that is edited, or empty
	Tokens []tokenChoice
	Rows   []itemRow
	Pairs  []metadataRow
	// Deposits is set if there is a network on which invoices have deposit addresses.
	Deposits bool
}

// tokenChoice is a token on a network.
type tokenChoice struct {
	Value, Name string
}

// itemRow is a row of the form for a line item.
type itemRow struct {
	Label, Amount string
	Error         string
}

// metadataRow is a row of the form for a pair of the metadata.
type metadataRow struct {
	Key, Value string
	Error      string
}

// tokens returns the tokens of all networks, in the order of their names, and the chosen one, if any, which the service
// may no longer accept for new invoices.
func (v *visit) tokens(chosen string) []tokenChoice {
	var all []tokenChoice
	for _, c := range v.chains {
		for _, token := range c.Tokens {
			all = append(all, tokenChoice{c.Key + "/" + token.Currency, token.Currency + " · " + v.Network(c.Key)})
		}
	}
	slices.SortFunc(all, func(a, b tokenChoice) int { return strings.Compare(a.Name, b.Name) })
	if key, currency, ok := strings.Cut(chosen, "/"); ok && !slices.ContainsFunc(all, func(c tokenChoice) bool { return c.Value == chosen }) {
		all = append(all, tokenChoice{chosen, currency + " · " + v.Network(key)})
	}
	return all
}

// newInvoiceForm returns an empty form.
func (d *Dashboard) newInvoiceForm(v *visit) *invoiceForm {
	f := &invoiceForm{fields: newFields(url.Values{"once": {rand.Text()}, "expiresAt": {clock.Format(d.cfg.Now().Add(formLifetime), v.Zone(), formTime)}}), Tokens: v.tokens(""), Deposits: d.hasDeposits()}
	f.addRows()
	return f
}

// formOf returns a form with the terms of an invoice.
func (d *Dashboard) formOf(v *visit, inv apitypes.Invoice) *invoiceForm {
	f := d.newInvoiceForm(v)
	f.Tokens = v.tokens(inv.ChainKey + "/" + inv.Currency)
	for name, value := range map[string]string{
		"token": inv.ChainKey + "/" + inv.Currency, "amount": v.major(inv.Amount), "merchantAddress": inv.MerchantAddress, "description": inv.Description,
		"returnUrl": inv.ReturnURL, "cancelUrl": inv.CancelURL, "collection": string(inv.Collection), "merchantId": inv.MerchantID,
	} {
		f.Set(name, value)
	}
	if inv.Customer != nil {
		f.Set("customer.id", inv.Customer.ID)
		f.Set("customer.email", inv.Customer.Email)
	}
	f.Rows = db.Each(inv.LineItems, func(item apitypes.LineItem) itemRow { return itemRow{Label: item.Label, Amount: v.major(item.Amount)} })
	f.addRows()
	return f
}

// postedInvoiceForm returns the form that a request sends.
func (d *Dashboard) postedInvoiceForm(r *http.Request) *invoiceForm {
	f := &invoiceForm{fields: newFields(r.PostForm), Tokens: visitOf(r).tokens(r.PostForm.Get("token")), Draft: r.PathValue("id"), Deposits: d.hasDeposits()}
	for _, row := range postedRows(r, "metadataKey", "metadataValue") {
		value := strings.ReplaceAll(row[1], "\r\n", "\n") // as browsers send line breaks
		f.Pairs = append(f.Pairs, metadataRow{Key: strings.TrimSpace(row[0]), Value: value})
	}
	for _, row := range postedRows(r, "itemLabel", "itemAmount") {
		f.Rows = append(f.Rows, itemRow{Label: row[0], Amount: row[1]})
	}
	return f
}

// postedRows returns the values of the rows of a form with two columns.
func postedRows(r *http.Request, first, second string) [][2]string {
	rows := make([][2]string, len(r.PostForm[first]))
	for i, value := range r.PostForm[first] {
		if rows[i][0] = value; i < len(r.PostForm[second]) {
			rows[i][1] = r.PostForm[second][i]
		}
	}
	return rows
}

// hasDeposits reports whether invoices can have deposit addresses.
func (d *Dashboard) hasDeposits() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(d.chains)), func(c chain.Chain) bool { return !c.DepositFactory.IsZero() })
}

// addRows adds itemRows empty rows of each kind, up to the limits.
func (f *invoiceForm) addRows() {
	for range min(itemRows, invoice.MaxMetadata-len(f.Pairs)) {
		f.Pairs = append(f.Pairs, metadataRow{})
	}
	for range min(itemRows, invoice.MaxLineItems-len(f.Rows)) {
		f.Rows = append(f.Rows, itemRow{})
	}
}

// HasRoom reports whether the form may get more rows. It is for templates.
func (f *invoiceForm) HasRoom() bool {
	return len(f.Rows) < invoice.MaxLineItems || len(f.Pairs) < invoice.MaxMetadata
}

// request returns the body of the request to the interface. ok is false if a field is wrong.
// rows are the indexes of the rows of its line items.
func (f *invoiceForm) request(v *visit) (body map[string]any, rows []int, ok bool) {
	chainKey, currency, _ := strings.Cut(f.Get("token"), "/")
	body = map[string]any{
		"chainKey": chainKey, "currency": currency, "reference": f.member("reference"), "description": f.member("description"),
		"returnUrl": f.member("returnUrl"), "cancelUrl": f.member("cancelUrl"), "metadata": f.metadata(v), "customer": map[string]any{"id": f.member("customer.id"), "email": f.member("customer.email")},
	}
	for _, name := range []string{"merchantAddress", "collection"} {
		if value := f.member(name); value != nil {
			body[name] = value
		}
	}
	expires, err := time.ParseInLocation(formTime, f.Get("expiresAt"), v.Zone())
	if err != nil {
		f.Errors["expiresAt"] = v.text.T("form.error.time", nil)
	}
	body["expiresAt"] = expires.Unix()
	items, sum, rows := f.items(v)
	body["lineItems"] = items
	if strings.TrimSpace(f.Get("amount")) != "" || len(items) == 0 {
		var problem string
		if sum, problem = v.parseAmount(f.Get("amount")); problem != "" {
			f.Errors["amount"] = problem
		}
	}
	body["amount"] = sum.String()
	wrongRow := slices.ContainsFunc(f.Rows, func(row itemRow) bool { return row.Error != "" }) ||
		slices.ContainsFunc(f.Pairs, func(row metadataRow) bool { return row.Error != "" })
	return body, rows, len(f.Errors) == 0 && !wrongRow
}

// metadata returns the pairs of the rows that are not empty, and null for keys that the form had
// before and that were removed.
func (f *invoiceForm) metadata(v *visit) map[string]any {
	pairs := make(map[string]any)
	for _, key := range f.Values["metadataBefore"] {
		pairs[key] = nil
	}
	for i := range f.Pairs {
		row := &f.Pairs[i]
		_, set := pairs[row.Key]
		switch {
		case row.Key == "" && strings.TrimSpace(row.Value) == "":
			continue
		case row.Key == "":
			row.Error = v.text.T("form.error.key", nil)
		case set && pairs[row.Key] != nil:
			row.Error = v.text.T("form.error.twice", nil)
		}
		pairs[row.Key] = row.Value
	}
	return pairs
}

// items returns the line items of the rows that are not empty, their sum, and their rows.
func (f *invoiceForm) items(v *visit) (items []apitypes.LineItem, sum invoice.Amount, rows []int) {
	items = []apitypes.LineItem{}
	for i := range f.Rows {
		row := &f.Rows[i]
		label := strings.TrimSpace(row.Label)
		if label == "" && strings.TrimSpace(row.Amount) == "" {
			continue
		}
		amount, problem := v.parseAmount(row.Amount)
		if label == "" && problem == "" {
			problem = v.text.T("form.error.label", nil)
		}
		var fits bool
		if sum, fits = sum.Add(amount); !fits && problem == "" {
			problem = v.text.T("amount.error.large", nil)
		}
		row.Error = problem
		items, rows = append(items, apitypes.LineItem{Label: label, Amount: amount.String()}), append(rows, i)
	}
	return items, sum, rows
}

// parseAmount parses an amount that the person typed. problem explains why it is refused, or is empty.
func (v *visit) parseAmount(typed string) (amount invoice.Amount, problem string) {
	amount, err := webpage.ParseAmount(typed, v.text.Lang(), chain.TokenDecimals)
	switch {
	case errors.Is(err, webpage.ErrAmbiguous):
		problem = "amount.error.ambiguous"
	case errors.Is(err, invoice.ErrTooPrecise):
		problem = "amount.error.precise"
	case errors.Is(err, invoice.ErrAmountOverflow):
		problem = "amount.error.large"
	case err != nil:
		problem = "amount.error.syntax"
	case amount.IsZero():
		problem = "amount.error.zero"
	default:
		return amount, ""
	}
	return invoice.Amount{}, v.text.T(problem, map[string]any{"Decimals": chain.TokenDecimals})
}

// refuse shows an error of the interface at its field or row.
func (f *invoiceForm) refuse(err error, rows []int) error {
	var p *problem
	if errors.As(err, &p) && p.Status == http.StatusBadRequest {
		index, isItem := strings.CutPrefix(p.Field, "lineItems[")
		index, _, _ = strings.Cut(index, "]")
		i, notNumber := strconv.Atoi(index)
		key, isPair := strings.CutPrefix(strings.TrimSuffix(p.Field, "]"), "metadata[")
		pair := slices.IndexFunc(f.Pairs, func(row metadataRow) bool { return row.Key == key })
		switch {
		case isPair && pair >= 0:
			f.Pairs[pair].Error = p.Detail
			return nil
		case isItem && notNumber == nil && i >= 0 && i < len(rows):
			f.Rows[rows[i]].Error = p.Detail
			return nil
		case p.Code == apitypes.CodeInvalidChain || p.Field == "chainKey" || p.Field == "currency":
			f.Errors["token"] = p.Detail
			return nil
		}
	}
	return f.refuseAt(err, invoiceFields)
}

// invoiceFields are the fields of the form with the same names as in the interface.
var invoiceFields = []string{"amount", "merchantAddress", "expiresAt", "reference", "description", "customer.id", "customer.email", "returnUrl", "cancelUrl", "collection", "metadata", "merchantId", "lineItems"}
