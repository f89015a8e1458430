package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
)

func TestFaultOf(t *testing.T) {
	dial := func(at string, err error) error {
		op := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)}
		if at != "" {
			op.Addr = net.TCPAddrFromAddrPort(netip.MustParseAddrPort(at))
		}
		return fmt.Errorf("Post: %w", op)
	}
	lookup := func(text string) error {
		return fmt.Errorf("dial: %w", &net.DNSError{Err: text, Name: "a.example", IsNotFound: true})
	}
	for name, c := range map[string]struct {
		err   error
		short bool // of late
		want  Fault
	}{
		"no descriptor":                  {err: dial("", syscall.EMFILE), want: FaultShortage},
		"none on the machine":            {err: dial("", syscall.ENFILE), want: FaultShortage},
		"no buffer":                      {err: dial("192.0.2.1:443", syscall.ENOBUFS), want: FaultShortage},
		"no memory":                      {err: dial("192.0.2.1:443", syscall.ENOMEM), want: FaultShortage},
		"our own bound":                  {err: fmt.Errorf("Post: %w", errNoConnection), want: FaultShortage},
		"a lookup without descriptor":    {err: lookup("dial udp 127.0.0.53:53: socket: too many open files"), want: FaultShortage},
		"a lookup after a shortage":      {err: lookup("no such host"), short: true, want: FaultShortage},
		"a lookup":                       {err: lookup("no such host"), want: FaultTheirs},
		"no local port":                  {err: dial("192.0.2.1:443", syscall.EADDRNOTAVAIL), want: FaultAddress},
		"an IPv6 address without IPv6":   {err: dial("[2001:db8::1]:443", syscall.EADDRNOTAVAIL), want: FaultTheirs},
		"refused":                        {err: dial("192.0.2.1:443", syscall.ECONNREFUSED), want: FaultTheirs},
		"refused after a shortage":       {err: dial("192.0.2.1:443", syscall.ECONNREFUSED), short: true, want: FaultTheirs},
		"too slow":                       {err: context.DeadlineExceeded, want: FaultTheirs},
		"a text that a receiver made up": {err: errors.New("too many open files"), want: FaultTheirs},
	} {
		if got := faultOf(c.err, c.short); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
