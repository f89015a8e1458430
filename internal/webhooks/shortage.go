package webhooks

import (
	"errors"
	"net"
	"os"
	"syscall"

	"github.com/quittance/quittance/internal/limits"
)

// Fault is the party at fault for an exchange's failure.
type Fault int

const (
	// FaultTheirs means that the endpoint, or the network on the way to it, is at fault.
	FaultTheirs Fault = iota
	// FaultStopped means that this process did not run for a while, or that it has no local port left for connections
	// to the endpoint's address.
	FaultStopped
	// FaultShortage means that this process or machine has run out of a resource, or cannot use its proxy: every other
	// exchange would fail in the same way.
	FaultShortage
)

// faultOf returns the party at fault for an error. short reports whether this process lacks descriptors now: the text
// of a lookup's error does not always name the shortage. No earlier shortage is remembered: a name that does not exist
// would prolong it without end.
func faultOf(err error, short func() bool) Fault {
	var proxy *proxyError
	if errors.Is(err, errNoConnection) || limits.IsShortage(err) || errors.As(err, &proxy) {
		return FaultShortage
	}
	var lookup *net.DNSError
	if errors.As(err, &lookup) && (limits.SaysShortage(lookup.Err) || short()) {
		return FaultShortage
	}
	// Without IPv6 on this machine, every IPv6 address is "not available". That counts against an endpoint without
	// another address.
	var op *net.OpError
	if errors.Is(err, syscall.EADDRNOTAVAIL) && errors.As(err, &op) {
		if at, ok := op.Addr.(*net.TCPAddr); ok && at.IP.To4() != nil {
			return FaultStopped
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
