package webhooks

import "time"

// RetryWindow is how long after an event its delivery may be attempted.
const RetryWindow = 24 * time.Hour

// Status is the state of a delivery.
type Status string

// A delivery is pending until an attempt succeeds or no attempt is left. None is the status of an event without a
// delivery, because its merchant wanted no events.
const (
	Pending   Status = "pending"
	Delivered Status = "delivered"
	Failed    Status = "failed"
	None      Status = "none"
)

// Delivery is an event on its way to a merchant's endpoint.
type Delivery struct {
	ID         string
	Seq        int64 // of the event
	EventID    string
	MerchantID string
	EventType  string
	Body       []byte // the envelope, as sent
	Attempts   int    // finished attempts
	// PriorAttempts are the attempts that were finished when the present schedule began: a delivery that is sent again
	// gets a new schedule.
	PriorAttempts int
	Due           time.Time // when this attempt was due
	Deadline      time.Time // only the first attempt of the schedule may start after it
	Suspect       bool      // it was leased as a delivery to a suspect endpoint
}

// TooLate reports whether the deadline has passed. A delivery without an attempt in its present schedule is never too
// late: it gets one attempt even after a long outage of this service.
func (d Delivery) TooLate(now time.Time) bool {
	return now.After(d.Deadline) && d.Attempts > d.PriorAttempts
}

// Attempt is one exchange with a merchant's endpoint.
type Attempt struct {
	Number     int // from 1
	Started    time.Time
	Duration   time.Duration
	StatusCode int    // 100 to 999; 0 when there was no answer
	Error      string // why it failed; empty when it succeeded
	Excerpt    string // beginning of the answer's body, without secrets
	// How much of Duration each phase took, if it happened: looking up the name, connecting, the TLS handshake, and
	// waiting for the answer's first byte.
	Lookup, Connect, Handshake, Answer time.Duration
}

// Outcome is the outcome of a leased delivery.
type Outcome struct {
	Delivery Delivery // as it was leased
	LeaseID  string
	Attempt  *Attempt // nil when the delivery was too late for another attempt
	Status   Status
	// NextDue is when the next attempt of a pending delivery is due. Finished is
	// when the delivery became delivered or failed.
	NextDue, Finished time.Time
	// URL is the URL that it was posted to. It is empty if the configuration sets the merchant's URL.
	URL string
	// Change returns the merchant's breaker after the attempt; nil leaves the breaker unchanged. It may be called more
	// than once.
	Change func(Breaker) Breaker
}

// Attempts returns the delivery's number of attempts, including this one.
func (o Outcome) Attempts() int {
	if o.Attempt == nil {
		return o.Delivery.Attempts
	}
	return o.Attempt.Number
}
