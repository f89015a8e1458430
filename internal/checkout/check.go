package checkout

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/inspect"
	"github.com/quittance/quittance/internal/invoice"
)

// RefreshCheck is how often a browser reloads the page about a transaction while its
// result may change.
const RefreshCheck = 15 * time.Second

// Inspector looks up transactions at the nodes. *inspect.Inspector implements it.
type Inspector interface {
	// Transaction returns the report of a transaction on the named chain or another one.
	// The error is inspect.ErrUnavailable if the chain's nodes do not answer.
	Transaction(ctx context.Context, chainKey string, tx invoice.Hash, to invoice.Address) (inspect.Report, error)
}

// checkData is the data of the template of the page about a transaction.
type checkData struct {
	view
	Ask     question
	Result  *checkResult
	Claim   *claimForm // nil if there is nothing to claim
	Refresh int        // seconds until the next reload; 0: never
}

// question is the form for a transaction's hash.
type question struct {
	InvoiceID string
	Typed     string // input of the payer
	Problem   string // why Typed is not a hash
}

// Address returns the page's address, up to the parameter lang.
func (q question) Address() template.URL {
	return template.URL("/checkout/" + q.InvoiceID + "/check?" + url.Values{"tx": {q.Typed}}.Encode() + "&") //nolint:gosec // a stored id, and escaped
}

// check answers with the page about a transaction that a payer names.
func (c *Checkout) check(w http.ResponseWriter, r *http.Request) error {
	s, err := c.loadFor(r)
	if err != nil {
		return err
	}
	typed := r.URL.Query().Get("tx")
	if typed == "" {
		return c.render(w, r, http.StatusOK, "check.html", checkData{view: newView(s), Ask: question{InvoiceID: s.invoice.ID}})
	}
	tx, wrong := parseTxHash(typed)
	if wrong != "" {
		ask := question{s.invoice.ID, strings.ToValidUTF8(typed[:min(len(typed), maxShown)], ""), wrong.in(s.text)}
		return c.render(w, r, http.StatusBadRequest, "check.html", checkData{view: newView(s), Ask: ask})
	}
	data, err := c.checkPage(r, s, tx)
	if err != nil {
		return err
	}
	return c.render(w, r, http.StatusOK, "check.html", data)
}

// checkPage returns the page about a transaction.
func (c *Checkout) checkPage(r *http.Request, s pageInput, tx invoice.Hash) (checkData, error) {
	found, err := c.lookUp(r, s, tx)
	if err != nil {
		return checkData{}, err
	}
	v := s.resultOf(found)
	data := checkData{view: newView(s), Ask: question{InvoiceID: s.invoice.ID, Typed: tx.String()}, Result: &v}
	if v.Changing {
		data.Refresh = seconds(RefreshCheck)
	}
	if v.Claimable != nil && c.claims != nil && s.invoice.Status != invoice.Drafted && s.invoice.Status != invoice.Void {
		data.Claim, err = c.claimForm(r.Context(), s, *v.Claimable)
	}
	return data, err
}

// maxShown bounds the input that the page repeats, in bytes.
const maxShown = 200

// lookUp returns the stored payments of a transaction or, without any, the report of
// the nodes. Lookups at the nodes are limited; the error is errTooOften.
func (c *Checkout) lookUp(r *http.Request, s pageInput, tx invoice.Hash) (lookup, error) {
	rows, err := c.reader.PaymentsOfTransaction(r.Context(), c.chainKeys, tx)
	if err != nil {
		return lookup{}, fmt.Errorf("read payments of transaction %s: %w", tx, err)
	}
	var found lookup
	for _, row := range rows {
		found.payments = append(found.payments, row.Payment)
	}
	if _, ok := s.relevant(found.payments); ok || c.inspector == nil {
		return found, nil
	}
	uses := []use{{allClients, Lookups}, {s.invoice.ID, LookupsOfInvoice}}
	if key := client(r); key != "" {
		uses = append(uses, use{key, LookupsOfClient})
	}
	if !c.lookups.allow(c.now(), uses...) {
		return found, errTooOften
	}
	select {
	case c.inspecting <- struct{}{}:
		defer func() { <-c.inspecting }()
	default:
		return found, errTooOften
	}
	report, err := c.inspector.Transaction(r.Context(), s.chain.Key, tx, s.invoice.PayTo())
	switch {
	case errors.Is(err, inspect.ErrUnavailable):
		c.logger.WarnContext(r.Context(), "transaction not looked up", "chain", s.chain.Key, "tx", tx.String(), "err", err)
		return found, nil
	case err != nil:
		return found, fmt.Errorf("look up transaction %s: %w", tx, err)
	}
	found.report = &report
	return found, nil
}

// keysOf returns the keys of the chains.
func keysOf(chains []chain.Chain) []string {
	keys := make([]string, len(chains))
	for i, c := range chains {
		keys[i] = c.Key
	}
	return keys
}
