package poster

import (
	"crypto/tls"
	"net/http/httptrace"
	"sync"
	"time"
)

// phases are how long the phases of an exchange took. One that did not happen,
// because a connection was open already or the exchange ended before, is zero.
type phases struct {
	lookup, connect, handshake time.Duration
	// answer is from the request's last byte to the answer's first.
	answer time.Duration
}

// trace times the phases of one exchange. net/http may go on with a connection
// that the exchange has given up and call the trace later, hence the lock.
type trace struct {
	now func() time.Time

	mu      sync.Mutex
	started map[*time.Duration]time.Time
	took    phases
}

func newTrace(now func() time.Time) *trace {
	return &trace{now: now, started: make(map[*time.Duration]time.Time)}
}

func (t *trace) phases() phases {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.took
}

func (t *trace) start(part *time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.started[part] = t.now()
}

func (t *trace) stop(part *time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at, ok := t.started[part]; ok {
		*part = t.now().Sub(at)
	}
}

func (t *trace) client() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		DNSStart:             func(httptrace.DNSStartInfo) { t.start(&t.took.lookup) },
		DNSDone:              func(httptrace.DNSDoneInfo) { t.stop(&t.took.lookup) },
		ConnectStart:         func(string, string) { t.start(&t.took.connect) },
		ConnectDone:          func(string, string, error) { t.stop(&t.took.connect) },
		TLSHandshakeStart:    func() { t.start(&t.took.handshake) },
		TLSHandshakeDone:     func(tls.ConnectionState, error) { t.stop(&t.took.handshake) },
		WroteRequest:         func(httptrace.WroteRequestInfo) { t.start(&t.took.answer) },
		GotFirstResponseByte: func() { t.stop(&t.took.answer) },
	}
}
