package deliver

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/webhook"
)

// userAgent names the sender.
const userAgent = "Quittance"

// NewClient returns the client of all exchanges. It keeps connections open
// for the next event, uses no proxy and follows no redirect. control, if not
// nil, is called with each address before it is dialled, after the name was
// looked up, and refuses it by an error: a guard there sees what is dialled
// and not what a name said earlier.
func NewClient(control func(network, address string, conn syscall.RawConn) error) *http.Client {
	dialer := &net.Dialer{Control: control}
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2:      true,
			DisableCompression:     true, // the body is not looked at
			MaxResponseHeaderBytes: MaxResponseHeader,
			MaxIdleConns:           512,
			MaxIdleConnsPerHost:    16,
			IdleConnTimeout:        90 * time.Second,
			HTTP2:                  &http.HTTP2Config{SendPingTimeout: silence, PingTimeout: pingTimeout},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// errTimeout is the cause of an exchange's end by its time limit.
var errTimeout = errors.New("the exchange took too long")

// answer is how an exchange ended.
type answer struct {
	code       int           // 100 to 999; 0 when there was no answer
	retryAfter time.Duration // that a failed answer asked for
	err        error         // why it was not a success
}

// exchange posts the delivery's event, signed as of now.
func (w *Worker) exchange(ctx context.Context, to Endpoint, d store.Delivery, now time.Time) answer {
	ctx, cancel := context.WithTimeoutCause(ctx, w.Limits.Timeout, errTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, bytes.NewReader(d.Body))
	if err != nil {
		return answer{err: errors.New("the webhook URL cannot be read: expected http://… or https://…")}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set(webhook.HeaderEvent, d.EventType)
	req.Header.Set(webhook.HeaderDelivery, d.ID)
	req.Header.Set(webhook.HeaderTimestamp, strconv.FormatInt(now.Unix(), 10))
	req.Header.Set(webhook.HeaderSignature, webhook.Sign(to.Secret, now, d.Body))
	resp, err := w.Client.Do(req)
	if err != nil {
		return answer{err: w.cause(ctx, "no answer", err)}
	}
	a := w.judge(ctx, resp, now)
	if err := resp.Body.Close(); err != nil && a.err == nil {
		a.err = w.cause(ctx, "the answer was cut off", err)
	}
	return a
}

// judge reads an answer. Reading the body of a refusal, too, lets the
// connection be used again; how that ends does not matter.
func (w *Worker) judge(ctx context.Context, resp *http.Response, now time.Time) answer {
	_, err := io.Copy(io.Discard, io.LimitReader(resp.Body, MaxResponse))
	switch code := resp.StatusCode; {
	case code < 100:
		return answer{err: fmt.Errorf("answered %d, which is no status", code)}
	case code < 200 || code > 299:
		return answer{code: code, retryAfter: retryAfter(resp.Header.Get("Retry-After"), now),
			err: fmt.Errorf("answered %d, expected 2xx", code)}
	case err != nil:
		return answer{code: code, err: w.cause(ctx, "the answer was cut off", err)}
	default:
		return answer{code: code}
	}
}

// cause says why an exchange broke. It leaves out the URL, which may hold a
// secret.
func (w *Worker) cause(ctx context.Context, what string, err error) error {
	if errors.Is(context.Cause(ctx), errTimeout) {
		return fmt.Errorf("%s within %s", strings.Replace(what, "was cut off", "was not complete", 1), w.Limits.Timeout)
	}
	var withURL *url.Error
	if errors.As(err, &withURL) {
		err = withURL.Err
	}
	return fmt.Errorf("%s: %w", what, err)
}

// retryAfter reads a Retry-After header (RFC 9110, section 10.2.3), seconds or
// a date. What cannot be read, or lies in the past, asks for nothing.
func retryAfter(text string, now time.Time) time.Duration {
	const most = store.RetryWindow * time.Millisecond
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil {
		return time.Duration(min(seconds, uint64(most/time.Second))) * time.Second
	}
	date, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return max(0, min(date.Sub(now), most))
}

// errorText is an error as the log of attempts keeps it: bounded, and valid
// text for every database whatever the receiver sent.
func errorText(err error) string {
	text := strings.ReplaceAll(err.Error(), "\x00", "")
	return strings.ToValidUTF8(text[:min(len(text), MaxError)], "")
}
