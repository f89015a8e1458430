package server

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/web/webpage"
)

// listensOn is a listener that only has an address.
type listensOn struct {
	net.Listener
	address net.TCPAddr
}

func (l listensOn) Addr() net.Addr { return &l.address }

// TestPrivateListeners checks at which listeners /status and /metrics want no key.
func TestPrivateListeners(t *testing.T) {
	t.Parallel()
	behindProxy := limits.Proxies{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	for _, c := range []struct {
		address string
		doors   []webpage.Door
		cfg     Config
		want    bool
	}{
		{"127.0.0.1", []webpage.Door{webpage.OperatorDoor}, Config{}, true},
		{"127.0.0.1", []webpage.Door{webpage.OperatorDoor}, Config{Proxies: behindProxy, Hosts: []string{"pay.example.com"}}, true},
		{"127.0.0.1", webpage.Doors, Config{}, true},
		{"127.0.0.1", webpage.Doors, Config{Proxies: behindProxy}, false},
		{"127.0.0.1", webpage.Doors, Config{Hosts: []string{"pay.example.com"}}, false},
		{"0.0.0.0", []webpage.Door{webpage.OperatorDoor}, Config{}, false},
		{"0.0.0.0", []webpage.Door{webpage.OperatorDoor}, Config{Proxies: behindProxy}, false},
		{"10.0.0.1", webpage.Doors, Config{}, false},
	} {
		s := &Server{cfg: c.cfg}
		l := &Listener{Listener: listensOn{address: net.TCPAddr{IP: net.ParseIP(c.address)}}, doors: c.doors}
		if got := s.isPrivate(l); got != c.want {
			t.Errorf("%s: private %t, want %t", fmt.Sprint(c.address, c.doors, c.cfg.Hosts, c.cfg.Proxies.Trusted), got, c.want)
		}
	}
}
