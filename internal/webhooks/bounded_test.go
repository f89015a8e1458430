package webhooks_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// scripted accepts connections, reads one request from each, and passes the connection to
// serve. It closes the connections when the test ends.
func scripted(t *testing.T, serve func(conn net.Conn)) (url string) {
	t.Helper()
	l := listen(t)
	served := make(chan struct{})
	go func() {
		defer close(served)
		var held []net.Conn
		for {
			conn, err := l.Accept()
			if err != nil {
				break // the listener is closed
			}
			held = append(held, conn)
			go func() {
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					serve(conn)
				}
			}()
		}
		for _, conn := range held {
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-served
	})
	return "http://" + l.Addr().String()
}

const switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: nothing\r\n\r\n"

// TestSwitchingProtocolsHoldsNoSlot checks that receivers that answer with 101 or endless
// 1xx responses do not block other deliveries or the stop of the worker.
func TestSwitchingProtocolsHoldsNoSlot(t *testing.T) {
	for name, answer := range map[string]func(net.Conn){
		"101": func(conn net.Conn) { _, _ = io.WriteString(conn, switching) },
		"103 without end": func(conn net.Conn) {
			for err := error(nil); err == nil; {
				_, err = io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			const sick = 20
			url := scripted(t, answer)
			r := newReceiver(t, status(http.StatusOK))
			s := dbtest.Open(t, dbtest.SQLite(t))
			for i := range sick {
				dbtest.Schedule(t, s, "sick"+string(rune('a'+i)), 0, 3, epoch.UnixMilli()-1000)
			}
			dbtest.Schedule(t, s, "well", 0, 5, epoch.UnixMilli()-100)
			w := newWorld(t, s, r.URL)
			w.Limits = webhooks.Limits{First: 2, Retries: 2, Suspect: 4, Timeout: patience}
			w.Endpoints = all(byPrefix("sick", url, r.URL))
			w.start(t)
			for well := 0; well < 5; {
				if o := w.outcome(t); strings.HasPrefix(o.DeliveryID, "dlv_well") {
					wantOutcome(t, o, webhooks.Delivered, http.StatusOK, "")
					well++
				} else if o.Status != webhooks.Pending {
					t.Errorf("a sick one's outcome: %+v", o)
				}
			}
			if err := w.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// stuckTransport is a transport that ignores the context of a request. RoundTrip returns once over is closed.
type stuckTransport struct {
	arrived chan struct{}
	over    chan struct{}
}

func (d stuckTransport) RoundTrip(*http.Request) (*http.Response, error) {
	d.arrived <- struct{}{}
	<-d.over
	return nil, net.ErrClosed
}

func newStuckTransport(t *testing.T) stuckTransport {
	t.Helper()
	d := stuckTransport{make(chan struct{}, 100), make(chan struct{})}
	t.Cleanup(func() { close(d.over) })
	return d
}

// TestTimeLimitOfStuckTransport checks that the time limit holds when the transport ignores contexts.
func TestTimeLimitOfStuckTransport(t *testing.T) {
	p := webhooks.NewPoster(webhooks.PosterConfig{Client: &http.Client{Transport: newStuckTransport(t)}, Now: time.Now, Timeout: 10 * time.Millisecond})
	if a := p.Ping(t.Context(), webhooks.Endpoint{URL: "http://a.example/", Secret: secret}, "dlv_1", nil); a.Error != "no answer within 10ms" {
		t.Errorf("it ended with %q", a.Error)
	}
}

// TestStopDespiteStuckTransport checks that a worker stops within its grace period when the transport ignores contexts.
func TestStopDespiteStuckTransport(t *testing.T) {
	s := dbtest.Open(t, dbtest.SQLite(t))
	dbtest.Schedule(t, s, "m", 0, 1, epoch.UnixMilli())
	w := newWorld(t, s, "http://127.0.0.1:1/")
	transport := newStuckTransport(t)
	w.Client = &http.Client{Transport: transport}
	w.Limits = webhooks.Limits{Timeout: time.Hour, Grace: time.Millisecond}
	w.start(t)
	receive(t, transport.arrived, "the exchange")
	stopped := make(chan error, 1)
	go func() { stopped <- w.stop() }()
	if err := receive(t, stopped, "the stop"); err != nil {
		t.Error(err)
	}
	leaseOne(t, s, "another", epoch, epoch.Add(time.Second)) // the lease was released
}
