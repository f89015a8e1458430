package limits_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/expect"
)

func TestBudget(t *testing.T) {
	for _, limit := range []int{256, 300, 512, 1024, 4096, 65_536, 1_048_576} {
		b, err := limits.NewDescriptors(limit, 0)
		expect.OK(t, err)
		if total := b.Accepted + b.Webhooks + b.Webhooks/3; total > limit-80 || b.IdleWebhooks > b.Webhooks/4 {
			t.Errorf("%d are divided as %+v", limit, b)
		}
		if b.Accepted < 64 || b.Webhooks < 64 || b.IdleWebhooks < 16 {
			t.Errorf("of %d a part has too few: %+v", limit, b)
		}
	}
	for limit, want := range map[int]limits.Budget{
		1024:    {Limit: 1024, Accepted: 472, Webhooks: 354, IdleWebhooks: 88},
		20_000:  {Limit: 20_000, Accepted: 14_459, Webhooks: 4096, IdleWebhooks: 512},
		65_536:  {Limit: 65_536, Accepted: 24_576, Webhooks: 4096, IdleWebhooks: 512},
		1 << 20: {Limit: 1 << 20, Accepted: 24_576, Webhooks: 4096, IdleWebhooks: 512},
	} {
		if got, err := limits.NewDescriptors(limit, 0); got != want || err != nil {
			t.Errorf("%d are divided as %+v, %v, want %+v", limit, got, err, want)
		}
	}
	fewer, err := limits.NewDescriptors(512, 20)
	if all, _ := limits.NewDescriptors(512, 0); err != nil || fewer.Accepted >= all.Accepted || fewer.Webhooks >= all.Webhooks {
		t.Errorf("20 nodes leave %+v, %v; none %+v", fewer, err, all)
	}
	for _, c := range []struct{ limit, nodes int }{{255, 0}, {512, 100}, {0, 0}} {
		if b, err := limits.NewDescriptors(c.limit, c.nodes); err == nil {
			t.Errorf("%+v is divided as %+v", c, b)
		}
	}
}

func TestIsShortage(t *testing.T) {
	op := func(err error) error {
		return fmt.Errorf("connect: %w", &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", err)})
	}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false}, {errors.New("too many open files"), false},
		{op(syscall.EMFILE), true}, {op(syscall.ENFILE), true}, {op(syscall.ENOBUFS), true}, {op(syscall.ENOMEM), true},
		{op(syscall.ECONNREFUSED), false}, {op(syscall.ECONNRESET), false}, {op(syscall.EADDRNOTAVAIL), false},
	} {
		if got := limits.IsShortage(c.err); got != c.want {
			t.Errorf("IsShortage(%v) is %t", c.err, got)
		}
	}
	if !limits.SaysShortage("lookup a.example: dial udp 127.0.0.53:53: socket: too many open files") || limits.SaysShortage("no such host") {
		t.Error("the texts are wrong")
	}
}

func TestLimit(t *testing.T) {
	if n, err := limits.DescriptorLimit(); n <= 0 || err != nil {
		t.Errorf("the limit is %d, %v", n, err)
	}
}
