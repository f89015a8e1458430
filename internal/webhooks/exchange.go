package webhooks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/chain"
)

// maxTarget is the maximum length of a redirect's target in an attempt's error, in bytes.
const maxTarget = 300

// errTimeout is the cause if the time limit ended an exchange.
var errTimeout = errors.New("the exchange took too long")

func (p *Poster) send(ctx context.Context, to Endpoint, m Message, now time.Time) Answer {
	trace := &trace{now: p.conf.Now}
	way := new(route)
	ctx = way.attach(httptrace.WithClientTrace(ctx, trace.client()))
	target, err := url.Parse(to.URL)
	if err != nil {
		return Answer{Err: errUnreadable}
	}
	req, err := http.NewRequestWithContext(withScheme(ctx, target.Scheme), http.MethodPost, to.URL, bytes.NewReader(m.Body))
	if err != nil {
		return Answer{Err: errUnreadable}
	}
	to.sign(req.Header, m, now)
	resp, err := p.conf.Client.Do(req)
	if errors.Is(err, chain.ErrSwitched) {
		return Answer{Code: http.StatusSwitchingProtocols, Err: chain.ErrSwitched, phases: trace.phases()}
	}
	if err != nil {
		err = way.blame(ctx, err)
		a := Answer{Err: p.cause(ctx, "no answer", err), Fault: p.faultOf(err)}
		if proxy := (*proxyError)(nil); errors.As(err, &proxy) {
			a.Detail = proxy.detail()
		}
		if !errors.Is(a.Err, errUnreachable) { // the times of such an exchange would reveal the reason
			a.phases = trace.phases()
		}
		return a
	}
	a := p.judge(ctx, to, resp, now)
	if err := resp.Body.Close(); err != nil && a.Err == nil {
		a.Err = p.cause(ctx, "the answer was cut off", err)
	}
	a.phases = trace.phases()
	return a
}

// errUnreadable is the error of an exchange with an invalid URL.
var errUnreadable = errors.New("the webhook URL cannot be read: expected http://… or https://…")

// judge reads an answer. It also reads the body of a refusal so that the connection can be reused, and ignores errors
// of that.
func (p *Poster) judge(ctx context.Context, to Endpoint, resp *http.Response, now time.Time) Answer {
	var begin bytes.Buffer
	body := io.TeeReader(io.LimitReader(resp.Body, MaxResponse), &limitedWriter{&begin, MaxExcerpt})
	_, err := io.Copy(io.Discard, body)
	text := to.redact(excerpt(begin.Bytes()), begin.Len() == MaxExcerpt)
	a := Answer{Code: resp.StatusCode, Excerpt: clip(text, MaxExcerpt)}
	switch {
	case a.Code < 100:
		a.Err, a.Code = fmt.Errorf("answered %d, which is no status", a.Code), 0
	case a.Code < 200 || a.Code > 299:
		a.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), now)
		a.Err = fmt.Errorf("answered %d%s, expected 2xx", a.Code, leadsTo(resp))
	case err != nil:
		a.Err, a.Fault = p.cause(ctx, "the answer was cut off", err), p.faultOf(err)
	}
	return a
}

// leadsTo returns the target of a redirect, which is not followed; "" for another answer. The part after a question
// mark may be a secret.
func leadsTo(resp *http.Response) string {
	to, err := resp.Location()
	if resp.StatusCode > 399 || err != nil || to.Host == "" {
		return ""
	}
	to.User, to.Fragment, to.RawQuery = nil, "", ""
	return ", which leads to " + clip(to.String(), maxTarget) + " and is not followed"
}

// cause returns why an exchange failed, without the URL, which may contain a secret, and without addresses.
func (p *Poster) cause(ctx context.Context, what string, err error) error {
	var proxy *proxyError
	switch late := errors.Is(context.Cause(ctx), errTimeout); {
	case errors.As(err, &proxy):
		return fmt.Errorf("%s: %w", what, errProxy)
	case late && errors.Is(err, errNotConnected):
		return fmt.Errorf("%w within %s", errNotConnected, p.conf.Timeout)
	case late:
		return fmt.Errorf("%s within %s", strings.Replace(what, "was cut off", "was not complete", 1), p.conf.Timeout)
	}
	var withURL *url.Error
	if errors.As(err, &withURL) {
		err = withURL.Err
	}
	return fmt.Errorf("%s: %w", what, withoutAddresses(err))
}

// withoutAddresses returns a connection's error in a form that merchants may read. It leaves out the addresses of names
// in the service's network, whether names exist there, and the addresses of the service and its resolver. They would
// help an attacker.
func withoutAddresses(err error) error {
	var lookup *net.DNSError
	var op *net.OpError
	switch {
	case errors.Is(err, ErrPlain):
		return ErrPlain
	case errors.Is(err, ErrForbidden), errors.As(err, &lookup):
		return errUnreachable
	case errors.As(err, &op):
		return op.Err
	}
	return err
}

// errUnreachable is what a merchant reads instead of ErrForbidden, and if a name has no address.
var errUnreachable = errors.New("no address of this host was found that webhooks may reach; if it has one that is not public, the operator can allow it under webhooks.allow")

// retryAfter parses a Retry-After header (RFC 9110, section 10.2.3): seconds or a date. It returns 0 if the header is
// invalid or in the past.
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil {
		return time.Duration(min(seconds, uint64(RetryWindow/time.Second))) * time.Second
	}
	date, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return max(0, min(date.Sub(now), RetryWindow))
}

// errorText returns an error for the log of attempts: bounded, and valid text for every database.
func errorText(err error) string {
	return clip(strings.ReplaceAll(err.Error(), "\x00", ""), MaxError)
}

// clip truncates a text to a number of bytes and removes invalid UTF-8.
func clip(text string, most int) string {
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}
