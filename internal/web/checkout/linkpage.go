package checkout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/web/checkout/locale"
	"github.com/quittance/quittance/internal/web/webpage"
)

// Limits of the invoices that payers make at payment links.
const (
	// InvoicesOfLink bounds the invoices per minute of one link.
	InvoicesOfLink = 60
	// InvoicesOfClient bounds the invoices per minute of one client network.
	InvoicesOfClient = 20
	// InvoicesOfClientPerHour bounds the invoices of one address or IPv6 site at a merchant in an hour, or in
	// their lifetime if that is longer. So one client holds at most three times as many transfer amounts of a price.
	InvoicesOfClientPerHour = 100
	// AllLinkInvoices bounds the invoices per minute of all links.
	AllLinkInvoices = 300
)

// Links finds payment links and makes their invoices. *ledger.PaymentLinkManager implements it and
// documents the errors.
type Links interface {
	Find(ctx context.Context, merchantID, slug string) (invoice.PaymentLink, error)
	OfInvoice(ctx context.Context, inv invoice.Invoice) (invoice.PaymentLink, error)
	Pay(ctx context.Context, l invoice.PaymentLink, amount invoice.Amount, visit string) (invoice.Invoice, error)
}

// linkRoutes returns the routes of the pages of payment links.
func (c *Checkout) linkRoutes() []webpage.Route {
	const page = "/pay/{merchant}/{slug}"
	return []webpage.Route{
		c.route("GET "+page, c.linkPage),
		c.route("POST "+page, c.payLink),
		c.route("GET "+page+"/qr", c.linkCode),
		c.route("GET "+page+"/logo", c.linkLogo),
	}
}

// linkView is the content of the page of a payment link.
type linkView struct {
	Path        string // of the page
	Action      string // of the form: Path with the query that later pages keep
	Merchant    string
	Brand       brand
	Title       string
	Description string
	Network     string
	Currency    string
	Amount      string // in major units; empty if the payer enters it
	Bounds      string // of an amount that the payer enters; empty without
	Frame       frame
	// Visit identifies this opening of the page: it makes at most one invoice for an amount.
	Visit   string
	Typed   string
	Problem string // why the form was refused
}

// link is what the page of a payment link reads.
type link struct {
	invoice.PaymentLink
	profile invoice.Merchant
	token   chain.Token
	text    *locale.Text
}

// linkPage answers with the page of a payment link. It makes no invoice, because programs that preview
// links also open it.
func (c *Checkout) linkPage(w http.ResponseWriter, r *http.Request) error {
	l, err := c.loadLink(r)
	if err != nil {
		return err
	}
	v := c.linkView(r, l)
	v.Frame.setHeaders(w)
	if l.Archived {
		return c.showError(w, r, errLinkArchived)
	}
	if v.Visit, err = c.newVisit(); err != nil {
		return err
	}
	if query := r.URL.Query(); l.IsFree() && query.Has("amount") {
		v.Typed = shortenedAmount(query.Get("amount"))
		_, v.Problem = l.parseAmount(v.Typed)
	}
	return c.render(w, r, http.StatusOK, "link.html", v)
}

// payLink makes an invoice of a payment link, and redirects to its checkout. If the link does not take the amount, it
// redirects to the link's page with the amount, so that the payer can navigate between the pages.
func (c *Checkout) payLink(w http.ResponseWriter, r *http.Request) error {
	visit, err := visitIn(r)
	if err != nil {
		return err
	}
	l, err := c.loadLink(r)
	if err != nil {
		return err
	}
	v := c.linkView(r, l)
	v.Frame.setHeaders(w)
	v.Visit = visit
	again := func(status int, problem string) error {
		v.Problem = l.text.T(problem, locale.Values{"Merchant": v.Merchant})
		return c.render(w, r, status, "link.html", v)
	}
	amount := l.Amount
	if l.IsFree() {
		var problem string
		v.Typed = shortenedAmount(r.PostForm.Get("amount"))
		if amount, problem = l.parseAmount(v.Typed); problem != "" {
			return lead(w, r, v.Path+v.Frame.query("amount", v.Typed))
		}
	}
	if exceeded := (*limits.ExceededError)(nil); errors.As(c.admit(r, l), &exceeded) {
		w.Header().Set("Retry-After", exceeded.RetryAfter)
		return again(http.StatusTooManyRequests, "link.problem.often")
	}
	inv, err := c.conf.Links.Pay(r.Context(), l.PaymentLink, amount, visit)
	unusable := (*ledger.UnusableError)(nil)
	switch {
	case errors.Is(err, ledger.ErrArchived):
		return c.showError(w, r, errLinkArchived)
	case errors.Is(err, ledger.ErrIdempotencyInProgress):
		return again(http.StatusConflict, "link.problem.progress")
	case errors.As(err, &unusable):
		c.conf.Logger.WarnContext(r.Context(), "payment link refused", "link", l.ID, "err", err)
		return again(http.StatusConflict, "link.problem.unusable")
	case err != nil:
		return fmt.Errorf("make an invoice of %s: %w", l.ID, err)
	}
	target := "/checkout/" + inv.ID
	if inv.Status == invoice.Expired || inv.Status == invoice.Void {
		target = v.Path // another visit makes another invoice
	}
	return lead(w, r, target+v.Frame.query())
}

// holder is a client network that holds transfer amounts of a merchant by invoices with a lifetime of this window.
type holder struct {
	limits.Party

	window time.Duration
}

// newHeld returns the buckets of InvoicesOfClientPerHour.
func newHeld(now func() time.Time) *limits.Buckets[holder] {
	limit := limits.Limit{Name: "link_invoices", Quota: InvoicesOfClientPerHour, Window: time.Hour}
	return limits.NewBuckets[holder](limit, AllLinkInvoices*int(time.Hour/limits.QuotaWindow), now)
}

// admit counts an invoice of a link, unless a limit is reached. The error is a *limits.ExceededError.
func (c *Checkout) admit(r *http.Request, l link) error {
	networks := limits.Networks(r.Context())
	if len(networks) == 0 {
		return c.linked.Take(r.Context(), l.MerchantID, l.ID)
	}
	at := holder{limits.PartyOf(l.MerchantID), max(l.Lifetime, time.Hour)}
	at.Network = networks[len(networks)-1].Client.Network
	err := c.held.TakeIn(at, at.window).Err()
	if err != nil {
		return err
	}
	if err = c.linked.Take(r.Context(), l.MerchantID, l.ID); err != nil {
		c.held.ReturnIn(at, at.window)
	}
	return err
}

// visitIn returns the visit that a form names. The error is errBadForm.
func visitIn(r *http.Request) (string, error) {
	visit := r.PostForm.Get("visit")
	if visit == "" || len(visit) > MaxID || strings.ContainsFunc(visit, isNotIDChar) {
		return "", errBadForm
	}
	return visit, nil
}

// parseAmount parses the amount that a payer types. If the link does not take it, problem is the reason.
func (l link) parseAmount(typed string) (amount invoice.Amount, problem string) {
	amount, err := webpage.ParseAmount(typed, l.text.Lang(), l.token.Decimals)
	var id string
	var bound invoice.Amount
	switch {
	case errors.Is(err, webpage.ErrAmbiguous):
		id = "link.problem.ambiguous"
	case errors.Is(err, invoice.ErrTooPrecise):
		id = "link.problem.precise"
	case errors.Is(err, invoice.ErrAmountOverflow):
		id = "link.problem.large"
	case err != nil:
		id = "link.problem.syntax"
	case amount.IsZero():
		id = "link.problem.zero"
	case amount.Less(l.Minimum):
		id, bound = "link.from", l.Minimum
	case !l.Takes(amount):
		id, bound = "link.upTo", l.Maximum
	default:
		return amount, ""
	}
	return amount, l.text.T(id, locale.Values{"Amount": l.money(bound), "Decimals": l.token.Decimals})
}

// money formats an amount with its currency.
func (l link) money(a invoice.Amount) string {
	return a.Major(l.token.Decimals) + "\u00a0" + l.Currency
}

// bounds returns a text about the amounts that the link takes, or "".
func (l link) bounds() string {
	switch {
	case !l.IsFree() || l.Minimum.IsZero() && l.Maximum.IsZero():
		return ""
	case l.Maximum.IsZero():
		return l.text.T("link.from", locale.Values{"Amount": l.money(l.Minimum)})
	case l.Minimum.IsZero():
		return l.text.T("link.upTo", locale.Values{"Amount": l.money(l.Maximum)})
	}
	return l.text.T("link.between", locale.Values{"Least": l.money(l.Minimum), "Most": l.money(l.Maximum)})
}

// loadLink reads the link that the request's path names.
func (c *Checkout) loadLink(r *http.Request) (link, error) {
	found, err := c.conf.Links.Find(r.Context(), r.PathValue("merchant"), r.PathValue("slug"))
	if err != nil {
		return link{}, fmt.Errorf("read payment link: %w", err)
	}
	ch, ok := c.chains[found.ChainKey]
	if !ok && !found.Archived {
		return link{}, fmt.Errorf("payment link %s is on chain %q, which is not configured; add it to the configuration again, or archive the link", found.ID, found.ChainKey)
	}
	token, ok := ch.TokenNamed(found.Currency)
	if !ok && !found.Archived {
		return link{}, fmt.Errorf("payment link %s is in %s, which chain %q is not configured with; add it again, or archive the link", found.ID, found.Currency, ch.Key)
	}
	profile, known, err := c.findMerchant(r.Context(), found.MerchantID)
	if err == nil && !known {
		return link{}, errNotFound
	}
	return link{found, profile, token, locale.For(r)}, err
}

// linkView returns the content of a link's page, without the visit.
func (c *Checkout) linkView(r *http.Request, l link) linkView {
	v := linkView{
		Path: apiconv.PaymentLinkPath(l.PaymentLink), Merchant: pageInput{profile: l.profile, invoice: invoice.Invoice{MerchantID: l.MerchantID}}.merchant(),
		Brand: newBrand(l.profile), Title: l.Title, Description: l.Description, Network: networkName(l.text, l.ChainKey, c.chains[l.ChainKey].Name), Currency: l.Currency,
		Bounds: l.bounds(), Frame: newFrame(r, l.profile),
	}
	v.Action = v.Path + v.Frame.query()
	if !l.IsFree() {
		v.Amount = l.Amount.Major(l.token.Decimals)
	}
	return v
}

// newVisit returns 130 random bits as text.
func (c *Checkout) newVisit() (string, error) {
	var random [17]byte
	if _, err := io.ReadFull(c.conf.Rand, random[:]); err != nil {
		return "", fmt.Errorf("name a visit: %w", err)
	}
	return invoice.Text(random[:]), nil
}

// shortenedAmount returns what a payer typed, cut to webpage.MaxLength.
func shortenedAmount(typed string) string {
	return strings.ToValidUTF8(typed[:min(len(typed), webpage.MaxLength)], "")
}

// linkCode answers with a QR code of the link's URL.
func (c *Checkout) linkCode(w http.ResponseWriter, r *http.Request) error {
	l, err := c.loadLink(r)
	if err != nil {
		return err
	}
	code, err := webpage.NewQRCode(c.baseURL(r) + apiconv.PaymentLinkPath(l.PaymentLink))
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "public, max-age=3600")
	c.Write(w, r, http.StatusOK, "image/svg+xml", code.SVG())
	return nil
}

// linkLogo answers with the logo of the link's merchant.
func (c *Checkout) linkLogo(w http.ResponseWriter, r *http.Request) error {
	l, err := c.loadLink(r)
	if err != nil {
		return err
	}
	return c.sendLogo(w, r, l.profile)
}

// linkAgain returns the path of the payment link where a payer can begin again after the invoice has
// expired. It is "" without such a link, and once money for the invoice has arrived.
func (c *Checkout) linkAgain(ctx context.Context, s pageInput, f frame) (string, error) {
	inTime, late := s.invoice.Arrived()
	if c.conf.Links == nil || s.invoice.Status != invoice.Expired || !inTime.IsZero() || !late.IsZero() {
		return "", nil
	}
	l, err := c.conf.Links.OfInvoice(ctx, s.invoice)
	switch {
	case errors.Is(err, db.ErrNotFound):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read the payment link of %s: %w", s.invoice.ID, err)
	case l.Archived:
		return "", nil
	}
	path := "/pay/" + l.MerchantID + "/" + l.Slug
	if l.IsFree() {
		amount := s.major(s.invoice.Amount)
		if _, decimals, _ := strings.Cut(amount, "."); len(decimals) == len("000") {
			amount += "0" // in some languages three digits may be thousands
		}
		return path + f.query("amount", amount), nil
	}
	return path + f.query(), nil
}
