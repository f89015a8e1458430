package webhooks

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"

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

const (
	// limiterPause is how long no attempt begins after a shortage.
	limiterPause = time.Second
	// putBackBackoff is how long a merchant's queues are paused after one of its deliveries was put back.
	putBackBackoff = time.Second
)

// limiter limits the number of attempts in flight after this process ran out of a resource: to half the number at that
// time, and then to twice as many with each second without another shortage.
type limiter struct {
	limit  int       // 0 means no limit
	raised time.Time // time of the last change of limit
	until  time.Time // no attempt begins before it
}

// backOff records a shortage while a number of attempts were in flight.
func (l *limiter) backOff(inFlight int, now time.Time) {
	if now.Before(l.until) {
		return // among the ones that began together
	}
	l.limit, l.raised, l.until = max(1, inFlight/2), now, now.Add(limiterPause)
}

// room returns how many more attempts may begin while inFlight are in flight. slots is the total number.
func (l *limiter) room(inFlight, slots int, now time.Time) int {
	for ; l.limit > 0 && now.Sub(l.raised) >= limiterPause; l.raised = l.raised.Add(limiterPause) {
		if l.limit *= 2; l.limit >= slots {
			l.limit = 0
		}
	}
	if l.limit == 0 {
		return slots
	}
	return max(0, l.limit-inFlight)
}

// paused reports whether no attempt may begin yet.
func (l *limiter) paused(now time.Time) bool { return now.Before(l.until) }

// putBack handles an attempt that failed through this process's fault. It does not count against the endpoint, and the
// lease is released.
func (r *run) putBack(f finished) {
	d := f.outcome.Delivery
	r.giveBack(f.outcome.LeaseID, d.Seq)
	r.schedule.add(Queue{MerchantID: d.MerchantID, Head: d.Due, HeadSeq: d.Seq})
	r.schedule.merchant(d.MerchantID).backoffUntil = r.conf.Schedule().Add(putBackBackoff)
	r.conf.Metrics.putBack.Inc()
	if f.fault == FaultShortage {
		r.limiter.backOff(len(r.attempts), time.Now())
	}
}
