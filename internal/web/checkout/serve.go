package checkout

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/web/checkout/locale"
	"github.com/quittance/quittance/internal/web/webpage"
)

// policy allows the page to load only files of this service, and the icons that wallets bring
// along as data: URLs: no inline script except the reloader, no styles, no frames, no other host.
var policy = "default-src 'none'; script-src 'self' " + reloader.source + "; style-src 'none'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// allow replaces 'none' by sources in a directive of a response's policy.
func allow(header http.Header, directive, sources string) {
	const name = "Content-Security-Policy"
	header.Set(name, strings.Replace(header.Get(name), directive+" 'none'", directive+" "+sources, 1))
}

// handler answers a request, or returns an error before it writes a response.
type handler = webpage.Handler

// pageError is an error that is shown as a page.
type pageError = webpage.PageError

// newPages returns what answers the requests of a checkout.
func newPages(c *Checkout) *webpage.Pages {
	return &webpage.Pages{
		Policy: policy, Logger: c.conf.Logger,
		Errors: webpage.PageErrors{
			NotFound: errNotFound, MethodNotAllowed: errMethodNotAllowed, TooOften: errTooOften, Busy: errBusy, Internal: errInternal,
		},
		Refuse: func(r *http.Request) *pageError {
			if c.conf.Origins.Check(r) != nil { // an unsafe request of a foreign origin
				return errCrossOrigin
			}
			return nil
		},
		Show: c.showError,
		Exceeded: func(limit string) {
			if slices.Contains(access.Quotas, limit) {
				c.conf.Refused(limit)
			}
		},
	}
}

var (
	errNotFound         = newPageError(http.StatusNotFound, "error.noPage", "error.link")
	errNoReceipt        = newPageError(http.StatusNotFound, "error.noReceipt.title", "error.noReceipt.text")
	errLinkArchived     = newPageError(http.StatusGone, "error.archived.title", "error.archived.text")
	errMethodNotAllowed = newPageError(http.StatusMethodNotAllowed, "error.form.title", "error.form.text")
	errCrossOrigin      = newPageError(http.StatusForbidden, "error.form.title", "error.form.text")
	errTestWallet       = newPageError(http.StatusBadGateway, "error.testWallet.title", "error.testWallet.text")
	errBadForm          = newPageError(http.StatusBadRequest, "error.form.title", "error.form.text")
	errTooOften         = newPageError(http.StatusTooManyRequests, "error.often.title", "error.again")
	errBusy             = newPageError(http.StatusServiceUnavailable, "error.busy.title", "error.again")
	errInternal         = newPageError(http.StatusInternalServerError, "error.internal.title", "error.again")
)

func newPageError(status int, title, text string) *pageError {
	return &pageError{Status: status, Title: title, Text: text}
}

// message is the data of the page of an error.
type message struct {
	*pageError

	Again bool // the page can be loaded again, in another language
}

// showError answers with the page of an error.
func (c *Checkout) showError(w http.ResponseWriter, r *http.Request, page *pageError) error {
	return c.render(w, r, page.Status, "message.html", message{page, r.Method != http.MethodPost})
}

// render answers with a template in the language of the request. It executes the template
// before it writes the response.
func (c *Checkout) render(w http.ResponseWriter, r *http.Request, status int, template string, data any) error {
	var body bytes.Buffer
	if err := templates()[locale.For(r)]().ExecuteTemplate(&body, template, data); err != nil {
		return fmt.Errorf("render %s: %w", template, err)
	}
	allow(w.Header(), "style-src", styleSources(data))
	c.Send(w, r, status, body.Bytes())
	return nil
}

// parseForm parses the form of a request of MaxClaimForm bytes at most. The error is errBadForm.
func parseForm(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, MaxClaimForm)
	if r.ParseForm() != nil {
		return errBadForm
	}
	return nil
}
