package checkout

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/web/checkout/locale"
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
	return db.During("report a transaction that is not recorded", c.conf.Unread.ReportUnread(ctx, s.chain.Key, tx, r.Block, ledger.UnreadLookup))
}

// maxTyped bounds the input that is parsed, in bytes.
const maxTyped = 1000

// hexRun matches a run of hex digits, with or without 0x.
var hexRun = regexp.MustCompile(`(?:0[xX])?[0-9a-fA-F]+`)

// Lengths in hex digits.
const (
	hashDigits    = 2 * len(invoice.Hash{})
	addressDigits = 2 * len(invoice.Address{})
)

// problem is the id of a text about input that the payer can correct.
type problem string

// in returns the text in a language.
func (p problem) in(text *locale.Text) string { return text.T(string(p), nil) }

// Problems of parseTxHash.
const (
	noHash        problem = "problem.noHash"
	isAnAddress   problem = "problem.isAddress"
	severalHashes problem = "problem.severalHashes"
)

// parseTxHash returns the one transaction hash in a payer's input: a hash with or without
// 0x, or the URL of a page that shows it. The problem is empty on success.
func parseTxHash(typed string) (invoice.Hash, problem) {
	if len(typed) > maxTyped {
		return invoice.Hash{}, noHash
	}
	var found invoice.Hash
	isAddress := false
	for _, run := range hexRun.FindAllString(typed, -1) {
		digits := run
		if len(run) > 1 && (run[1] == 'x' || run[1] == 'X') {
			digits = run[2:]
		}
		switch len(digits) {
		case addressDigits:
			isAddress = true
		case hashDigits:
			h, err := invoice.ParseHash("0x" + strings.ToLower(digits))
			if err != nil {
				return invoice.Hash{}, noHash
			}
			if !found.IsZero() && found != h {
				return invoice.Hash{}, severalHashes
			}
			found = h
		}
	}
	switch {
	case !found.IsZero():
		return found, ""
	case isAddress:
		return invoice.Hash{}, isAnAddress
	}
	return invoice.Hash{}, noHash
}

// Limits of lookups at the nodes.
const (
	// LookupsOfInvoice bounds the lookups per minute for one invoice.
	LookupsOfInvoice = 15
	// LookupsOfClient bounds the lookups per minute of one client network.
	LookupsOfClient = 30
	// Lookups bounds the lookups per minute of all clients.
	Lookups = 300
	// MaxLookups bounds the lookups in flight. A merchant and a client network have a share.
	MaxLookups = 16
)

const (
	// AnswerWithin is how long an answer about a transaction waits for the nodes. A lookup that takes
	// longer continues, and the page asks again.
	AnswerWithin = 1500 * time.Millisecond
	// keepLookups is how long a finished lookup answers the same question.
	keepLookups = 5 * time.Second
	// keepQueued is how long a lookup is kept whose transaction was queued, so that the next one can find out that it
	// was replaced.
	keepQueued = maxAgain * againAsk
)

// Inspector looks up transactions at the nodes. *chain.Inspector implements it.
type Inspector interface {
	// Transaction returns the report of a transaction on the named chain or another one.
	// The error is chain.ErrUnavailable if the chain's nodes do not answer.
	Transaction(ctx context.Context, chainKey string, tx invoice.Hash, to invoice.Address) (chain.Report, error)
	// IsReplaced reports whether an unknown transaction of a sender can no longer be mined. The
	// error is chain.ErrUnavailable.
	IsReplaced(ctx context.Context, chainKey string, sender invoice.Address, nonce uint64) (bool, error)
}

// lookups are the lookups of transactions at the nodes. Requests with the same question share one.
//
// Invariant: recent holds those in flight, and those that ended less than keepLookups or, if their transaction was
// queued, keepQueued ago; older ones are removed when one begins.
type lookups struct {
	conf     Config
	limit    *limits.Divided
	inFlight *limits.Shares[limits.Party]

	mu     sync.Mutex
	recent map[transactionQuery]*nodeLookup
}

// transactionQuery is a question about a transaction.
type transactionQuery struct {
	invoiceID string
	chainKey  string
	tx        invoice.Hash
	to        invoice.Address
}

// nodeLookup is a lookup. The fields below done are set before it is closed.
type nodeLookup struct {
	done     chan struct{}
	ended    time.Time
	report   chain.Report
	queued   *chain.Report // of this or an earlier lookup; nil if the transaction was not queued
	replaced bool
	err      error
}

// isNewer reports whether the lookup has not ended, or ended less than a time ago.
func (n *nodeLookup) isNewer(now time.Time, than time.Duration) bool {
	select {
	case <-n.done:
		return now.Sub(n.ended).Abs() < than
	default:
		return true
	}
}

// ask returns the lookup that answers a question: a recent one, or one that begins, for the
// merchant owner. The error of a refusal is errTooOften or *limits.ExceededError.
func (l *lookups) ask(r *http.Request, owner string, q transactionQuery) (*nodeLookup, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.conf.Now()
	for other, lookup := range l.recent {
		if !lookup.isNewer(now, keepLookups) && (lookup.queued == nil || !lookup.isNewer(now, keepQueued)) {
			delete(l.recent, other)
		}
	}
	lookup := &nodeLookup{done: make(chan struct{})}
	if last := l.recent[q]; last != nil {
		if last.isNewer(now, keepLookups) {
			return last, nil
		}
		lookup.queued = last.queued
	}
	payer := limits.Payer(r.Context(), owner)
	if l.inFlight.Take(1, payer...) != nil {
		return nil, errTooOften
	}
	done := func() { l.inFlight.Give(1, payer...) }
	if err := l.limit.Take(r.Context(), owner, q.invoiceID); err != nil {
		done()
		return nil, err
	}
	l.recent[q] = lookup
	ctx := chain.OnBehalfOf(context.WithoutCancel(r.Context()), owner)
	go func() {
		defer done()
		l.run(ctx, q, lookup)
	}()
	return lookup, nil
}

// run asks the nodes, which the inspector bounds.
func (l *lookups) run(ctx context.Context, q transactionQuery, lookup *nodeLookup) {
	lookup.report, lookup.err = l.conf.Inspector.Transaction(ctx, q.chainKey, q.tx, q.to)
	switch {
	case lookup.err != nil:
	case lookup.report.State == chain.Queued && lookup.report.Chain.Key == q.chainKey:
		lookup.queued = &lookup.report
	case lookup.report.State == chain.Unknown && lookup.queued != nil:
		lookup.replaced, lookup.err = l.conf.Inspector.IsReplaced(ctx, q.chainKey, lookup.queued.Sender, lookup.queued.Nonce)
	}
	if errors.Is(lookup.err, chain.ErrUnavailable) {
		l.conf.Logger.LogAttrs(ctx, slog.LevelWarn, "transaction not looked up",
			slog.String("chain", q.chainKey), slog.String("tx", q.tx.String()), slog.Any("err", lookup.err))
	}
	lookup.ended = l.conf.Now()
	close(lookup.done)
}

// await waits for the outcome, at most for AnswerWithin. ok is false if it is not known then.
func (n *nodeLookup) await(ctx context.Context) (ok bool) {
	timer := time.NewTimer(AnswerWithin)
	defer timer.Stop()
	select {
	case <-n.done:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}
