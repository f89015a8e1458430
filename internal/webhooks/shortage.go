package webhooks

import (
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/quittance/quittance/internal/limits"
)

// distrustLookups is how long after a shortage a failed lookup does not count against an endpoint: package net reads
// its configuration every 5 s.
const distrustLookups = 6 * time.Second

// Fault is the party at fault for an exchange's failure.
type Fault int

const (
	// FaultTheirs means that the endpoint, or the network on the way to it, is at fault.
	FaultTheirs Fault = iota
	// FaultAddress means that no local port is left for connections to its
	// address.
	FaultAddress
	// FaultStopped means that this process did not run for a while.
	FaultStopped
	// FaultShortage means that this process or machine has run out of a resource, or cannot use its proxy: every other
	// exchange would fail in the same way.
	FaultShortage
)

// shortage remembers when this process last ran out of a resource.
type shortage struct {
	mu   sync.Mutex
	last time.Time
}

func (s *shortage) note() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = time.Now()
}

// recent reports whether failed lookups are still ignored.
func (s *shortage) recent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.last) < distrustLookups
}

// faultOf returns the party at fault for an error, and records a shortage.
func (p *Poster) faultOf(err error) Fault {
	f := faultOf(err, p.shortage.recent())
	if f == FaultShortage {
		p.shortage.note()
	}
	return f
}

// faultOf returns the party at fault for an error. After a recent shortage failed lookups are ignored, because the
// resolver's configuration may not have been read.
func faultOf(err error, recent bool) Fault {
	var proxy *proxyError
	if errors.Is(err, errNoConnection) || limits.IsShortage(err) || errors.As(err, &proxy) {
		return FaultShortage
	}
	var lookup *net.DNSError
	if errors.As(err, &lookup) && (recent || limits.SaysShortage(lookup.Err) || outOfDescriptors()) {
		return FaultShortage
	}
	// Without IPv6 on this machine, every IPv6 address is "not available". That counts against an endpoint without
	// another address.
	var op *net.OpError
	if errors.Is(err, syscall.EADDRNOTAVAIL) && errors.As(err, &op) {
		if at, ok := op.Addr.(*net.TCPAddr); ok && at.IP.To4() != nil {
			return FaultAddress
		}
	}
	return FaultTheirs
}

// outOfDescriptors reports whether no file can be opened now.
func outOfDescriptors() bool {
	f, err := os.Open(os.DevNull)
	if err == nil {
		err = f.Close()
	}
	return limits.IsShortage(err)
}
