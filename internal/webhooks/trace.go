package webhooks

import (
	"crypto/tls"
	"net/http/httptrace"
	"sync"
	"time"
)

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
