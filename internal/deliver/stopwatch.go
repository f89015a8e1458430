package deliver

import (
	"crypto/tls"
	"net/http/httptrace"
	"sync"
	"time"
)

// phases are how long the parts of an exchange took. A part that did not
// happen, since a connection was open already or the exchange ended before, is
// zero.
type phases struct {
	lookup, connect, handshake time.Duration
	// answer is from the request's last byte to the answer's first.
	answer time.Duration
}

// stopwatch takes the times of one exchange. net/http may go on with a
// connection that an exchange has given up, and tell of it later.
type stopwatch struct {
	now func() time.Time

	mu      sync.Mutex
	started map[*time.Duration]time.Time
	took    phases
}

func newStopwatch(now func() time.Time) *stopwatch {
	return &stopwatch{now: now, started: make(map[*time.Duration]time.Time)}
}

func (w *stopwatch) phases() phases {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.took
}

func (w *stopwatch) start(part *time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.started[part] = w.now()
}

func (w *stopwatch) stop(part *time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, ok := w.started[part]; ok {
		*part = w.now().Sub(at)
	}
}

func (w *stopwatch) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		DNSStart:             func(httptrace.DNSStartInfo) { w.start(&w.took.lookup) },
		DNSDone:              func(httptrace.DNSDoneInfo) { w.stop(&w.took.lookup) },
		ConnectStart:         func(string, string) { w.start(&w.took.connect) },
		ConnectDone:          func(string, string, error) { w.stop(&w.took.connect) },
		TLSHandshakeStart:    func() { w.start(&w.took.handshake) },
		TLSHandshakeDone:     func(tls.ConnectionState, error) { w.stop(&w.took.handshake) },
		WroteRequest:         func(httptrace.WroteRequestInfo) { w.start(&w.took.answer) },
		GotFirstResponseByte: func() { w.stop(&w.took.answer) },
	}
}
