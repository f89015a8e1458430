package checkout

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// How long a page about a transaction waits before it asks again.
const (
	// againSoon applies while the nodes have not answered.
	againSoon = 2 * time.Second
	// againRead applies while the stored payments decide.
	againRead = 5 * time.Second
	// againAsk applies while the nodes decide.
	againAsk = 15 * time.Second
	// maxAgain is how often the page asks without a click.
	maxAgain = 60
)

// checkData is the data of the template of the page about a transaction.
type checkData struct {
	view
	Ask    question
	Result *checkResult
	Claim  *claimForm // nil if there is no payment to claim
	Again  int64      // seconds until the page asks again; 0: never
	Next   string     // path that the page then loads
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
	asked, _ := strconv.Atoi(r.URL.Query().Get("again")) // 0 if it is malformed
	if asked = max(0, asked); v.Again > 0 && asked < maxAgain {
		q := url.Values{"tx": {tx.String()}, "again": {strconv.Itoa(asked + 1)}, "lang": {s.text.Lang()}}
		data.Again, data.Next = seconds(v.Again), "/checkout/"+s.invoice.ID+"/check?"+q.Encode()
	}
	if v.Claimable != nil && c.conf.Claims != nil && s.invoice.Status != invoice.Drafted && s.invoice.Status != invoice.Void {
		data.Claim, err = c.claimForm(r.Context(), s, *v.Claimable, found.open)
	}
	return data, err
}

// maxShown bounds the input that the page repeats, in bytes.
const maxShown = 200

// lookUp returns the stored payments of a transaction or, without any, the report of
// the nodes. Lookups at the nodes are limited; its errors are the same as of lookups.ask.
func (c *Checkout) lookUp(r *http.Request, s pageInput, tx invoice.Hash) (lookup, error) {
	rows, err := c.conf.Reader.PaymentsOfTransaction(r.Context(), c.chainKeys, tx)
	if err != nil {
		return lookup{}, fmt.Errorf("read payments of transaction %s: %w", tx, err)
	}
	var found lookup
	for _, row := range rows {
		found.payments = append(found.payments, row.Payment)
		if row.Use == invoice.UseUndecided && s.invoice.Accepts(row.Transfer) {
			found.open++
		}
	}
	if _, ok := s.relevant(found.payments); ok || c.lookups.conf.Inspector == nil {
		return found, nil
	}
	asked, err := c.lookups.ask(r, s.invoice.MerchantID, transactionQuery{s.invoice.ID, s.chain.Key, tx, s.invoice.PayTo()})
	if err != nil {
		return found, err
	}
	switch {
	case !asked.await(r.Context()):
		found.pending = true
	case errors.Is(asked.err, chain.ErrUnavailable):
	case asked.err != nil:
		return found, fmt.Errorf("look up transaction %s: %w", tx, asked.err)
	default:
		found.report, found.replaced = &asked.report, asked.replaced
		return found, c.reportUnread(r.Context(), s, tx, asked.report)
	}
	return found, nil
}

// reportUnread has the block of a transaction read again if the transaction pays to the invoice's
// address and no payment of it is stored.
func (c *Checkout) reportUnread(ctx context.Context, s pageInput, tx invoice.Hash, r chain.Report) error {
	pays := func(m chain.Transfer) bool { return m.Token == s.invoice.Token && s.receives(m.To) }
	if c.conf.Unread == nil || r.State != chain.Mined || r.Chain.Key != s.chain.Key || !slices.ContainsFunc(r.Transfers, pays) {
		return nil
	}
	if err := c.conf.Unread.ReportUnread(ctx, s.chain.Key, tx, r.Block, ledger.UnreadLookup); err != nil {
		return fmt.Errorf("report transaction %s, which is not recorded: %w", tx, err)
	}
	return nil
}

// keysOf returns the keys of the chains.
func keysOf(chains []chain.Chain) []string {
	keys := make([]string, len(chains))
	for i, c := range chains {
		keys[i] = c.Key
	}
	return keys
}
