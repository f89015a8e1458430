package webhooks

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/tracing"
)

// maxTarget is the maximum length of a redirect's target in an attempt's error, in bytes.
const maxTarget = 300

// errTimeout is the cause if the time limit ended an exchange.
var errTimeout = errors.New("the exchange took too long")

func (p *Poster) send(ctx context.Context, to Endpoint, m Message, now time.Time) Answer {
	trace := &trace{now: p.conf.Now}
	ctx = httptrace.WithClientTrace(ctx, trace.client())
	target, err := url.Parse(to.URL)
	if err != nil {
		return Answer{Err: errUnreadable}
	}
	req, err := http.NewRequestWithContext(WithScheme(ctx, target.Scheme), http.MethodPost, to.URL, bytes.NewReader(m.Body))
	if err != nil {
		return Answer{Err: errUnreadable}
	}
	to.sign(req.Header, m, now)
	resp, err := p.conf.Client.Do(req)
	if errors.Is(err, chain.ErrSwitched) {
		return Answer{Code: http.StatusSwitchingProtocols, Err: chain.ErrSwitched, phases: trace.phases()}
	}
	if err != nil {
		a := Answer{Err: p.cause(ctx, "no answer", err), Fault: faultOf(err, outOfDescriptors)}
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
	case a.Code < 100 || a.Code > 999:
		a.Err, a.Code = fmt.Errorf("answered %d, which is no status", a.Code), 0
	case a.Code < 200 || a.Code > 299:
		a.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), now)
		a.Err = fmt.Errorf("answered %d%s, expected 2xx", a.Code, leadsTo(resp))
	case err != nil:
		a.Err, a.Fault = p.cause(ctx, "the answer was cut off", err), faultOf(err, outOfDescriptors)
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
func errorText(err error) string { return clip(strings.ReplaceAll(err.Error(), "\x00", ""), MaxError) }

// clip truncates a text to a number of bytes and removes invalid UTF-8.
func clip(text string, most int) string { return strings.ToValidUTF8(text[:min(len(text), most)], "") }

const (
	// DefaultTimeout is the limit on one exchange.
	DefaultTimeout = 5 * time.Second
	// MaxResponse is how many bytes of an answer's body are read. It does not wait for the rest.
	MaxResponse = 64 << 10
	// MaxResponseHeader bounds an answer's header, in bytes.
	MaxResponseHeader = 64 << 10
	// MaxExcerpt is how many bytes of the body the log of attempts holds.
	MaxExcerpt = 4 << 10
	// MaxError is the maximum length of an error in the log of attempts, in bytes.
	MaxError = 500
)

// PingEvent is the type of the message that Ping posts. A ping is not an event.
const PingEvent = "webhook.ping"

// PosterConfig configures a Poster.
type PosterConfig struct {
	Client *http.Client     // made by NewClient; required
	Now    func() time.Time // clock for exchanges; required
	// SignatureNow dates signatures, which receivers compare with their clock. nil means Now.
	SignatureNow func() time.Time
	// Timeout bounds a whole exchange: looking up the name, dialing, TLS, sending, and receiving the answer's header
	// and body. The default is DefaultTimeout.
	Timeout time.Duration
}

// Poster makes exchanges. It is safe for concurrent use.
type Poster struct {
	conf PosterConfig
}

// NewPoster returns a Poster.
func NewPoster(c PosterConfig) *Poster {
	if c.SignatureNow == nil {
		c.SignatureNow = c.Now
	}
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	return &Poster{conf: c}
}

// Message is the posted message: an event, or a ping.
type Message struct {
	ID    string // id of the delivery
	Event string // type of the event
	Body  []byte
}

// Answer is the result of an exchange.
type Answer struct {
	Code       int           // 100 to 999; 0 without an answer
	RetryAfter time.Duration // the pause that a failed answer asked for
	Err        error         // why the exchange failed; nil if it succeeded
	Detail     string        // for the operator's log in place of Err, if set; it may contain addresses
	Excerpt    string        // beginning of the answer's body
	Fault      Fault         // the cause of Err
	phases     phases
}

// Post posts a signed message. The answer contains no secret of the endpoint. The exchange ends with the time
// limit or the context.
func (p *Poster) Post(ctx context.Context, to Endpoint, m Message) Answer {
	ctx, span := tracing.Start(ctx, "webhook "+m.Event, oteltrace.SpanKindClient)
	a := p.bounded(ctx, func(ctx context.Context) Answer { return p.send(ctx, to, m, p.conf.SignatureNow()) })
	if a.Err != nil {
		a.Err, a.Detail = errors.New(to.redact(a.Err.Error(), false)), to.redact(a.Detail, false)
	}
	if span.IsRecording() {
		span.SetAttributes(attribute.String("quittance.delivery.id", m.ID), attribute.String("server.address", to.host()),
			attribute.Int("http.response.status_code", a.Code))
	}
	tracing.End(span, a.Err)
	return a
}

// Try posts a message once, in the same way as deliveries, and returns the attempt as in the log of attempts.
func (p *Poster) Try(ctx context.Context, to Endpoint, m Message) Attempt {
	started := p.conf.Now()
	a := p.Post(ctx, to, m)
	return a.Attempt(1, started, p.conf.Now().Sub(started))
}

// Ping posts a body to an endpoint in the same way as events are posted. If the attempt has no error, the endpoint
// would have accepted an event.
func (p *Poster) Ping(ctx context.Context, to Endpoint, id string, body []byte) Attempt {
	return p.Try(ctx, to, Message{ID: id, Event: PingEvent, Body: body})
}

// Attempt returns the answer in the form of the log of attempts.
func (a Answer) Attempt(number int, started time.Time, took time.Duration) Attempt {
	out := Attempt{
		Number: number, Started: started, Duration: max(0, took),
		StatusCode: a.Code, Excerpt: a.Excerpt,
		Lookup: a.phases.lookup, Connect: a.phases.connect, Handshake: a.phases.handshake, Answer: a.phases.answer,
	}
	if a.Err != nil {
		out.Error = errorText(a.Err)
	}
	return out
}

// oversleep is the excess over an exchange's limit that only occurs if this process was not running, or its clock was
// set.
const oversleep = 3 * time.Second

// overslept reports whether an exchange may have failed because this process was not running. If there was an answer,
// it is the endpoint's.
func overslept(a Answer, took, limit time.Duration) bool {
	return a.Err != nil && a.Code == 0 && took > limit+oversleep
}

// bounded runs an exchange within the time limit.
func (p *Poster) bounded(ctx context.Context, send func(ctx context.Context) Answer) Answer {
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, p.conf.Timeout, errTimeout)
	defer cancel()
	a := send(ctx)
	if overslept(a, time.Since(began), p.conf.Timeout) {
		a.Fault = FaultStopped
	}
	return a
}

// phases are the durations of an exchange's phases. A phase is zero if it did not happen, because a connection was open
// already or the exchange ended before.
type phases struct {
	lookup, connect, handshake time.Duration
	// answer is the time from the request's last byte to the answer's first.
	answer time.Duration
}

// trace measures the phases of one exchange. It has a lock because net/http may continue with a connection that the
// exchange has given up and call the trace later.
type trace struct {
	now func() time.Time

	mu      sync.Mutex
	started phaseTimes
	took    phases
}

// phaseTimes are the start times of the phases.
type phaseTimes struct{ lookup, connect, handshake, answer time.Time }

func (t *trace) phases() phases {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.took
}

func (t *trace) start(at *time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	*at = t.now()
}

func (t *trace) stop(at *time.Time, took *time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !at.IsZero() {
		*took = t.now().Sub(*at)
	}
}

func (t *trace) client() *httptrace.ClientTrace {
	at, took := &t.started, &t.took
	return &httptrace.ClientTrace{
		DNSStart:             func(httptrace.DNSStartInfo) { t.start(&at.lookup) },
		DNSDone:              func(httptrace.DNSDoneInfo) { t.stop(&at.lookup, &took.lookup) },
		ConnectStart:         func(string, string) { t.start(&at.connect) },
		ConnectDone:          func(string, string, error) { t.stop(&at.connect, &took.connect) },
		TLSHandshakeStart:    func() { t.start(&at.handshake) },
		TLSHandshakeDone:     func(tls.ConnectionState, error) { t.stop(&at.handshake, &took.handshake) },
		WroteRequest:         func(httptrace.WroteRequestInfo) { t.start(&at.answer) },
		GotFirstResponseByte: func() { t.stop(&at.answer, &took.answer) },
	}
}
