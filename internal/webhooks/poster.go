package webhooks

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/quittance/quittance/internal/tracing"
)

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
	conf     PosterConfig
	shortage shortage
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
	Overran    bool          // the exchange did not end when its time was over, and was cut off
	Fault      Fault         // the cause of Err
	phases     phases
}

// Post posts a signed message. The answer contains no secret of the endpoint. Post returns as soon as the time limit or
// the context ends, whatever the peer does and net/http waits for.
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
