package deliver

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/delivery"
)

// PingEvent is the type of what Ping posts. It is no event: nothing happened.
const PingEvent = "webhook.ping"

// Ping posts a body to an endpoint as events are posted, and returns how that
// went: without an error in it, the endpoint would have taken an event. It is
// not recorded, and the endpoint's breaker is not asked.
func (w *Worker) Ping(ctx context.Context, to Endpoint, id string, body []byte) delivery.Attempt {
	return w.Post(ctx, to, id, PingEvent, body)
}

// Post posts an event to an endpoint once, signed, sent and judged as the
// deliveries of Run are, and returns how that went. It is not recorded and
// never tried again. Of the worker, Client, Now and Limits.Timeout are used.
func (w *Worker) Post(ctx context.Context, to Endpoint, id, eventType string, body []byte) delivery.Attempt {
	poster := *w
	poster.Limits = w.Limits.orDefaults()
	started := w.Now()
	a := poster.exchange(ctx, to, message{id: id, event: eventType, body: body}, started)
	return a.attempt(1, started, w.Now().Sub(started))
}

// attempt is the answer as the log of attempts keeps it.
func (a answer) attempt(number int, started time.Time, took time.Duration) delivery.Attempt {
	out := delivery.Attempt{
		Number: number, StartedMS: started.UnixMilli(), DurationMS: max(0, took.Milliseconds()),
		StatusCode: a.code, Excerpt: a.excerpt,
		LookupMS: a.phases.lookup.Milliseconds(), ConnectMS: a.phases.connect.Milliseconds(),
		HandshakeMS: a.phases.handshake.Milliseconds(), AnswerMS: a.phases.answer.Milliseconds(),
	}
	if a.err != nil {
		out.Error = errorText(a.err)
	}
	return out
}
