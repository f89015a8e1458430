package deliver

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

	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/outbound"
)

// errTimeout is the cause of an exchange's end by its time limit.
var errTimeout = errors.New("the exchange took too long")

// answer is how an exchange ended.
type answer struct {
	code       int           // 100 to 999; 0 when there was no answer
	retryAfter time.Duration // that a failed answer asked for
	err        error         // why it was not a success
	excerpt    string        // how the body of the answer began
	phases     phases
	severed    bool  // it did not end by itself when its time was over
	fault      fault // whose the error is
}

// message is what is posted: an event, or a ping.
type message struct {
	id    string // of the delivery
	event string // the type
	body  []byte
}

// exchange posts a message, signed as of now. Its answer shows no secret of the
// endpoint. It ends when the time limit or the context does, whatever the peer
// does and whatever net/http waits for.
func (w *Worker) exchange(ctx context.Context, to Endpoint, m message, now time.Time) answer {
	a := w.bounded(ctx, func(ctx context.Context) answer { return w.send(ctx, to, m, now) })
	if a.err != nil {
		a.err = errors.New(to.redact(a.err.Error(), false))
	}
	return a
}

func (w *Worker) send(ctx context.Context, to Endpoint, m message, now time.Time) answer {
	watch := newStopwatch(w.Now)
	ctx = httptrace.WithClientTrace(ctx, watch.trace())
	target, err := url.Parse(to.URL)
	if err != nil {
		return answer{err: errUnreadable}
	}
	req, err := http.NewRequestWithContext(withScheme(ctx, target.Scheme), http.MethodPost, to.URL, bytes.NewReader(m.body))
	if err != nil {
		return answer{err: errUnreadable}
	}
	to.sign(req.Header, m, now)
	resp, err := w.Client.Do(req)
	if errors.Is(err, outbound.ErrSwitched) {
		return answer{code: http.StatusSwitchingProtocols, err: outbound.ErrSwitched, phases: watch.phases()}
	}
	if err != nil {
		return answer{err: w.cause(ctx, "no answer", err), fault: w.faultOf(err), phases: watch.phases()}
	}
	a := w.judge(ctx, to, resp, now)
	if err := resp.Body.Close(); err != nil && a.err == nil {
		a.err = w.cause(ctx, "the answer was cut off", err)
	}
	a.phases = watch.phases()
	return a
}

// errUnreadable is the error of an exchange with a URL that is none.
var errUnreadable = errors.New("the webhook URL cannot be read: expected http://… or https://…")

// judge reads an answer. Reading the body of a refusal, too, lets the
// connection be used again; how that ends does not matter.
func (w *Worker) judge(ctx context.Context, to Endpoint, resp *http.Response, now time.Time) answer {
	var begin bytes.Buffer
	body := io.TeeReader(io.LimitReader(resp.Body, MaxResponse), &limitedWriter{&begin, MaxExcerpt})
	_, err := io.Copy(io.Discard, body)
	text := to.redact(excerpt(begin.Bytes()), begin.Len() == MaxExcerpt)
	a := answer{code: resp.StatusCode, excerpt: clip(text, MaxExcerpt)}
	switch {
	case a.code < 100:
		a.err, a.code = fmt.Errorf("answered %d, which is no status", a.code), 0
	case a.code < 200 || a.code > 299:
		a.retryAfter = retryAfter(resp.Header.Get("Retry-After"), now)
		a.err = fmt.Errorf("answered %d, expected 2xx", a.code)
	case err != nil:
		a.err, a.fault = w.cause(ctx, "the answer was cut off", err), w.faultOf(err)
	}
	return a
}

// faultOf tells whose fault an error is, and notes a shortage.
func (w *Worker) faultOf(err error) fault {
	f := faultOf(err, w.pressure.since() < doubtLookups)
	if f == faultShortage {
		w.pressure.note()
	}
	return f
}

// cause says why an exchange broke. It leaves out the URL, which may hold a
// secret, and the addresses, which are nobody's business outside.
func (w *Worker) cause(ctx context.Context, what string, err error) error {
	if errors.Is(context.Cause(ctx), errTimeout) {
		return fmt.Errorf("%s within %s", strings.Replace(what, "was cut off", "was not complete", 1), w.Limits.Timeout)
	}
	var withURL *url.Error
	if errors.As(err, &withURL) {
		err = withURL.Err
	}
	return fmt.Errorf("%s: %w", what, withoutAddresses(err))
}

// withoutAddresses returns an error of a connection as a merchant may read it.
// What a name stands for in the service's own network, which address the
// service has there and where it looks names up would help an attacker.
func withoutAddresses(err error) error {
	var lookup *net.DNSError
	var op *net.OpError
	switch {
	case errors.Is(err, ErrPlain):
		return ErrPlain
	case errors.Is(err, ErrForbidden):
		return errNotAllowed
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return fmt.Errorf("lookup %s: no such host", lookup.Name)
	case errors.As(err, &lookup):
		return fmt.Errorf("lookup %s failed", lookup.Name)
	case errors.As(err, &op):
		return op.Err
	}
	return err
}

// errNotAllowed is what is said outside of an ErrForbidden.
var errNotAllowed = errors.New("the address of this host is not allowed for webhooks; the operator can allow it under webhooks.allow")

// retryAfter reads a Retry-After header (RFC 9110, section 10.2.3), seconds or
// a date. What cannot be read, or lies in the past, asks for nothing.
func retryAfter(text string, now time.Time) time.Duration {
	const most = delivery.RetryWindow * time.Millisecond
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
	return clip(strings.ReplaceAll(err.Error(), "\x00", ""), MaxError)
}

// clip cuts a text down to so many bytes, and leaves out what is no text.
func clip(text string, most int) string {
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}
