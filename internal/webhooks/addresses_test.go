package webhooks

import (
	"net"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/test/expect"
)

// TestErrorsShowNoAddresses posts to a forbidden address, to a closed port, to a name that does not exist, and to a
// connection that breaks. A merchant sees why it failed, and no address of the service's network.
func TestErrorsShowNoAddresses(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.OK(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close() // resets it
		}
	}()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	address := regexp.MustCompile(`\d+\.\d+\.\d+\.\d+|::1|` + port)
	const hidden = "no answer: no address of this host was found that webhooks may reach; if it has one that is not public, the operator can allow it under webhooks.allow"
	for _, c := range []struct {
		allow     []netip.Prefix
		url, want string
	}{
		{nil, "https://localhost:" + port, hidden}, // an existing internal name looks like an unknown one
		{nil, "http://localhost:" + port, hidden},
		{nil, "https://nowhere.invalid", hidden},
		{nil, "http://nowhere.invalid", hidden},
		{nil, "http://8.8.8.8:" + port, "without TLS"},
		{Loopback(), "http://localhost:1", "refused"},
		{Loopback(), "http://localhost:" + port, ""},
	} {
		client := NewClient(ClientConfig{Guard: NewGuard(c.allow)})
		a := NewPoster(PosterConfig{Client: client, Now: time.Now}).Try(t.Context(), Endpoint{URL: c.url, Secret: "secret of an endpoint"}, Message{ID: "dlv_1", Event: "invoice.paid", Body: []byte("{}")})
		if a.Error == "" || !strings.Contains(a.Error, c.want) || address.MatchString(a.Error) {
			t.Errorf("%s: %q; want %q and no address", c.url, a.Error, c.want)
		}
		if c.want == hidden && (a.Error != hidden || a.Lookup != 0 || a.Connect != 0 || a.StatusCode != 0) {
			t.Errorf("%s: %+v tells whether the name exists", c.url, a)
		}
		client.CloseIdleConnections()
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
	<-done
}
