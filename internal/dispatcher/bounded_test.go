package dispatcher_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/dispatcher"
	"github.com/quittance/quittance/internal/store/storetest"
)

// scripted takes connections, reads a request of each, and hands it over. The
// connections are closed when the test ends.
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
				break // closed
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

// A receiver that switches protocols has refused the event, at once.
func TestSwitchingProtocols(t *testing.T) {
	gone := make(chan struct{})
	url := scripted(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, switching)
		_, _ = io.Copy(io.Discard, conn)
		close(gone)
	})
	o := attemptAt(t, url)
	wantOutcome(t, o, delivery.Pending, http.StatusSwitchingProtocols, "101 Switching Protocols")
	receive(t, gone, "the end of the connection")
}

// Whether it answers 101 or a flood of other 1xx, a receiver holds no slot: what
// others wait for is delivered, and the worker stops.
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
			s := storetest.Open(t, storetest.SQLite(t))
			for i := range sick {
				storetest.Schedule(t, s, "sick"+string(rune('a'+i)), 0, 3, epoch.UnixMilli()-1000)
			}
			storetest.Schedule(t, s, "well", 0, 5, epoch.UnixMilli()-100)
			w := newWorld(t, s, r.URL)
			w.Limits = dispatcher.Limits{First: 2, Retries: 2, Suspect: 4, Timeout: patience}
			w.Endpoints = all(byPrefix("sick", url, r.URL))
			w.start(t)
			for well := 0; well < 5; {
				if o := w.outcome(t); strings.HasPrefix(o.DeliveryID, "dlv_well") {
					wantOutcome(t, o, delivery.Delivered, http.StatusOK, "")
					well++
				} else if o.Status != delivery.Pending {
					t.Errorf("a sick one's outcome: %+v", o)
				}
			}
			if err := w.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// deaf is a transport that hears of no context. It returns when it is closed.
type deaf struct {
	arrived chan struct{}
	over    chan struct{}
}

func (d deaf) RoundTrip(*http.Request) (*http.Response, error) {
	d.arrived <- struct{}{}
	<-d.over
	return nil, net.ErrClosed
}

func newDeaf(t *testing.T) deaf {
	t.Helper()
	d := deaf{make(chan struct{}, 100), make(chan struct{})}
	t.Cleanup(func() { close(d.over) })
	return d
}

// A worker stops within its grace, whatever holds its exchanges.
func TestStopsWhateverTheTransportDoes(t *testing.T) {
	s := storetest.Open(t, storetest.SQLite(t))
	storetest.Schedule(t, s, "m", 0, 1, epoch.UnixMilli())
	w := newWorld(t, s, "http://127.0.0.1:1/")
	transport := newDeaf(t)
	w.Client = &http.Client{Transport: transport}
	w.Limits = dispatcher.Limits{Timeout: time.Hour, Grace: time.Millisecond}
	w.start(t)
	receive(t, transport.arrived, "the exchange")
	stopped := make(chan error, 1)
	go func() { stopped <- w.stop() }()
	if err := receive(t, stopped, "the stop"); err != nil {
		t.Error(err)
	}
	leaseOne(t, s, "another", epoch, epoch.Add(time.Second)) // it was given back
}
