package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/webhook"
)

// userAgent identifies the sender.
const userAgent = "Quittance"

// Endpoint is where a merchant receives events.
type Endpoint struct {
	URL    string // http or https
	Secret string // key of the signature, including its prefix
	// Others also sign, in the header that can hold several signatures: the secrets that Secret replaced recently, and
	// the one that will replace it.
	Others []string
	// Headers are sent with each message. They passed CheckHeaders.
	Headers []access.WebhookHeader
	// Configured means that the configuration sets it for its merchant, even if the database has another.
	Configured bool
}

// host returns the host of the URL, without a port.
func (e Endpoint) host() string {
	u, err := url.Parse(e.URL)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// sign sets the headers of a message that is sent now.
func (e Endpoint) sign(h http.Header, m Message, now time.Time) {
	for _, own := range e.Headers {
		h.Set(own.Name, own.Value)
	}
	timestamp := strconv.FormatInt(now.Unix(), 10)
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", userAgent)
	h.Set(webhook.HeaderEvent, m.Event)
	h.Set(webhook.HeaderDelivery, m.ID)
	h.Set(webhook.HeaderTimestamp, timestamp)
	h.Set(webhook.HeaderSignature, webhook.Sign(e.Secret, now, m.Body))
	h.Set(webhook.HeaderStandardID, m.ID)
	h.Set(webhook.HeaderStandardTimestamp, timestamp)
	h.Set(webhook.HeaderStandardSignature, webhook.SignStandard(e.secrets(), m.ID, now, m.Body))
}

// secrets returns all secrets that sign, the active one first.
func (e Endpoint) secrets() []string { return append([]string{e.Secret}, e.Others...) }

// Limits of the headers of an endpoint.
const (
	// MaxHeaders is the maximum number of custom headers of an endpoint.
	MaxHeaders = 10
	// MaxHeaderName and MaxHeaderValue are the lengths of the longest name and value, in bytes.
	MaxHeaderName  = 64
	MaxHeaderValue = 1000
)

// ownHeaders are the headers that the service sets, and the headers of the connection (RFC 9110, section 7.6.1), in
// lower case.
var ownHeaders = []string{
	"accept-encoding", "connection", "content-encoding", "content-length", "content-type", "date", "expect", "host", "keep-alive", "te", "trailer",
	"traceparent", "tracestate", "transfer-encoding", "upgrade", "user-agent",
}

// ownPrefixes begin the names of other headers of the service and of proxies, in lower case.
var ownPrefixes = []string{"x-service-", "webhook-", "quittance-", "proxy-"}

// HeaderError is the reason why a header is refused. It does not contain the value.
type HeaderError struct {
	Index  int // index of the header; -1 for the list
	Detail string
}

// Error returns the reason.
func (e *HeaderError) Error() string { return e.Detail }

// CheckHeaders returns a *HeaderError if an endpoint cannot have the headers.
func CheckHeaders(headers []access.WebhookHeader) error {
	if len(headers) > MaxHeaders {
		return &HeaderError{-1, fmt.Sprintf("must be at most %d; there are %d", MaxHeaders, len(headers))}
	}
	var seen []string
	for i, h := range headers {
		name := strings.ToLower(h.Name)
		problem := ""
		switch {
		case h.Name == "" || len(h.Name) > MaxHeaderName || strings.ContainsFunc(h.Name, notInToken):
			problem = fmt.Sprintf("must have a name of 1 to %d letters, digits and hyphens; it has %.80q", MaxHeaderName, h.Name)
		case slices.Contains(ownHeaders, name) || slices.ContainsFunc(ownPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }):
			problem = "must not be " + h.Name + ", which the service or the connection sets"
		case slices.Contains(seen, name):
			problem = h.Name + " is given twice"
		case h.Value == "" || len(h.Value) > MaxHeaderValue || strings.TrimSpace(h.Value) != h.Value || strings.ContainsFunc(h.Value, notVisible):
			problem = fmt.Sprintf("%s must have a value of 1 to %d visible ASCII characters, and blanks between them alone", h.Name, MaxHeaderValue)
		}
		if problem != "" {
			return &HeaderError{i, problem}
		}
		seen = append(seen, name)
	}
	return nil
}

// notInToken reports whether a character is forbidden in names of headers. RFC 9110 allows more characters, but servers
// treat them differently.
func notInToken(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-'
}

// notVisible reports whether a character is forbidden in values of headers.
func notVisible(c rune) bool { return c < ' ' || c > '~' }

// HeaderChange is a header that an endpoint should have. Without a Value it keeps its present value. That is allowed
// only while the URL's scheme, host and port stay the same: a person who sets the URL could read the values at another
// host.
type HeaderChange struct {
	Name  string
	Value *string
}

// headers returns the headers of an endpoint.
func (d *Directory) headers(r SecretRow) ([]access.WebhookHeader, error) {
	if len(r.Sealed) == 0 {
		return nil, nil
	}
	if d.conf.Keyring == nil {
		return nil, ErrNoMasterKey
	}
	text, err := d.conf.Keyring.Open(r.MerchantID, HeadersVersion, access.Sealed{KeyID: r.KeyID, Data: r.Sealed})
	if err != nil {
		return nil, fmt.Errorf("headers of the webhook endpoint of %s: %w", r.MerchantID, err)
	}
	var all []access.WebhookHeader
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("headers of the webhook endpoint of %s: %w", r.MerchantID, err)
	}
	return all, nil
}

// putHeaders changes the headers of an endpoint with a locked row and the new URL. kept is set if the URL's origin has
// not changed; nil then leaves the headers as they are. The stored headers are read under the lock: if another request
// created the endpoint in between, the stored headers belong to that request, and kept is false.
func (d *Directory) putHeaders(ctx context.Context, tx *db.Tx, merchantID string, changes []HeaderChange, kept bool) error {
	rows, err := endpoints(ctx, tx, []string{merchantID})
	if err != nil {
		return err
	}
	stored := rows[merchantID].Headers
	switch {
	case changes != nil:
	case kept || len(stored.Sealed) == 0:
		return nil
	default:
		return &invoice.FieldError{Field: "headers", Detail: "is required: the endpoint has headers, and the URL has another scheme, host or port; give their values again, or [] to remove them"}
	}
	after, err := d.changedHeaders(merchantID, stored, changes, kept)
	if err != nil {
		return err
	}
	return putHeaders(ctx, tx, after)
}

// changedHeaders returns the encrypted headers of an endpoint after changes to its stored headers. Stored values are
// kept only if kept is set. The error is a *invoice.FieldError for headers that an endpoint cannot have.
func (d *Directory) changedHeaders(merchantID string, stored SecretRow, changes []HeaderChange, kept bool) (SecretRow, error) {
	var before []access.WebhookHeader
	if slices.ContainsFunc(changes, func(c HeaderChange) bool { return c.Value == nil }) {
		var err error
		if before, err = d.headers(stored); err != nil {
			return SecretRow{}, err
		}
	}
	after := make([]access.WebhookHeader, len(changes))
	for i, c := range changes {
		after[i].Name = c.Name
		if c.Value != nil {
			after[i].Value = *c.Value
			continue
		}
		same := slices.IndexFunc(before, func(h access.WebhookHeader) bool { return strings.EqualFold(h.Name, c.Name) })
		if same < 0 {
			return SecretRow{}, &invoice.FieldError{Field: fmt.Sprintf("headers[%d].value", i), Detail: fmt.Sprintf("is required: no value of %.80q is stored", c.Name)}
		}
		if !kept {
			return SecretRow{}, &invoice.FieldError{Field: fmt.Sprintf("headers[%d].value", i), Detail: fmt.Sprintf("is required: the URL has another scheme, host or port; give the value of %.80q again", c.Name)}
		}
		after[i].Value = before[same].Value
	}
	if wrong := (*HeaderError)(nil); errors.As(CheckHeaders(after), &wrong) {
		field := "headers"
		if wrong.Index >= 0 {
			field = fmt.Sprintf("headers[%d]", wrong.Index)
		}
		return SecretRow{}, &invoice.FieldError{Field: field, Detail: wrong.Detail}
	}
	row := SecretRow{MerchantID: merchantID}
	if len(after) == 0 {
		return row, nil
	}
	text, err := json.Marshal(after)
	if err != nil {
		return row, err
	}
	sealed := d.conf.Keyring.Seal(merchantID, HeadersVersion, string(text))
	row.Sealed, row.KeyID = sealed.Data, sealed.KeyID
	return row, nil
}

// namesOf returns the names of headers.
func namesOf(headers []access.WebhookHeader) []string {
	names := db.Each(headers, func(h access.WebhookHeader) string { return h.Name })
	return names
}
