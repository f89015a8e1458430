package limits_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/expect"
)

type shares = limits.Shares[string]

func claim(client string) limits.Claim[string] {
	return limits.Claim[string]{Client: client, Weight: 1}
}

// takeAll takes 1 until it is refused, and returns the number of successes and the error.
func takeAll(s *shares, claims ...limits.Claim[string]) (n int, err error) {
	for ; err == nil; n++ {
		err = s.Take(1, claims...)
	}
	return n - 1, err
}

func wantTaken(t *testing.T, s *shares, want int, limit string, claims ...limits.Claim[string]) {
	t.Helper()
	n, err := takeAll(s, claims...)
	exceeded := (*limits.ExceededError)(nil)
	if isShare := errors.As(err, &exceeded); n != want || isShare != (limit != "") || isShare && (exceeded.Limit != limit || exceeded.RetryAfter != "1") || !isShare && !errors.Is(err, limits.ErrBusy) {
		t.Errorf("%v took %d and then got %v; want %d and the limit %q", claims, n, err, want, limit)
	}
}

func TestSharesOfClients(t *testing.T) {
	t.Parallel()
	s := limits.NewShares[string]("seats", 100)
	wantTaken(t, s, 50, "seats", claim("a"))
	wantTaken(t, s, 25, "seats", claim("b")) // a has more than its share now, and keeps it
	s.Give(25, claim("a"))
	wantTaken(t, s, 13, "seats", claim("a")) // 38, and 37 are free
	wantTaken(t, s, 6, "seats", claim("b"))  // 31, and 31 are free
}

// TestSharesOfGroups checks that a group's claim weighs twice the claims of its clients.
func TestSharesOfGroups(t *testing.T) {
	t.Parallel()
	s := limits.NewShares[string]("seats", 90)
	group := limits.Claim[string]{Client: "group", Weight: 2}
	wantTaken(t, s, 45, "seats", claim("a"), group)
	wantTaken(t, s, 15, "seats", claim("b"), group) // the group has 60, and 30 are free
	wantTaken(t, s, 0, "seats", claim("c"), group)
	wantTaken(t, s, 15, "seats", claim("d"))
}

// TestMostOfAClient bounds a client below its share.
func TestMostOfAClient(t *testing.T) {
	t.Parallel()
	s := limits.NewShares[string]("seats", 10)
	for _, client := range []string{"a", "b"} {
		wantTaken(t, s, 3, "seats", limits.Claim[string]{Client: client, Weight: 1, Most: 3})
	}
	wantTaken(t, s, 2, "seats", limits.Claim[string]{Client: "c", Weight: 1, Most: 3}) // 4 were free
}

func TestSharesAreBounded(t *testing.T) {
	t.Parallel()
	s := limits.NewShares[string]("seats", 1)
	wantTaken(t, s, 1, "", claim("a"))
	s.Give(1, claim("a"))
	wantTaken(t, s, 1, "") // without a client only the capacity counts
	expect.Error(t, limits.ErrBusy, "one more is refused with")(s.Take(1, claim("b")))
}

// TestSharesOfAnybody takes and gives random amounts for several clients. No client has more than the
// capacity, and while any amount is free, a client without an amount gets one.
func TestSharesOfAnybody(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		capacity := rapid.Int64Range(1, 50).Draw(rt, "capacity")
		s := limits.NewShares[string]("seats", capacity)
		held, used := make(map[string]int64), int64(0)
		for range rapid.IntRange(0, 60).Draw(rt, "steps") {
			client, n := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "client"), rapid.Int64Range(1, 9).Draw(rt, "n")
			if rapid.Bool().Draw(rt, "give") {
				if n = min(n, held[client]); n > 0 {
					s.Give(n, claim(client))
					held[client], used = held[client]-n, used-n
				}
				continue
			}
			may := held[client]+n <= capacity-used
			if err := s.Take(n, claim(client)); (err == nil) != may {
				rt.Fatalf("a client with %d of %d took %d with %d free: %v", held[client], capacity, n, capacity-used, err)
			} else if err == nil {
				held[client], used = held[client]+n, used+n
			}
		}
		if err := s.Take(1, claim("new")); (err == nil) != (used < capacity) {
			rt.Fatalf("with %d of %d used, a new client gets %v", used, capacity, err)
		}
	})
}

// TestSharesOfParts shares a capacity among payers from two networks, an IPv6 site and elsewhere. The
// networks divide a merchant's half, and the merchants divide the whole.
func TestSharesOfParts(t *testing.T) {
	t.Parallel()
	s := limits.NewShares[limits.Party]("seats", 80)
	fill := func(address, merchant string, want int) {
		t.Helper()
		ctx := limits.NewContext(t.Context(), netip.MustParseAddr(address))
		n := 0
		for s.Take(1, limits.Payer(ctx, merchant)...) == nil {
			n++
		}
		if n != want {
			t.Errorf("%s takes %d at %q, want %d", address, n, merchant, want)
		}
	}
	fill("203.0.113.1", "acme", 20)
	fill("203.0.113.2", "acme", 10)
	fill("2001:db8:1:1::1", "acme", 5)
	fill("2001:db8:1:2::1", "acme", 2) // the site has 7, and twice the rest is 6
	fill("127.0.0.1", "acme", 3)       // no site: the rest of the half
	fill("203.0.113.1", "", 10)        // it has 30 together, and 30 are free
	fill("192.0.2.1", "", 10)
	fill("192.0.2.2", "globex", 10)
}

// TestChargeLater takes a share first and charges it to another client later.
func TestChargeLater(t *testing.T) {
	t.Parallel()
	s := limits.NewShares[string]("seats", 4)
	for range 2 {
		expect.OK(t, s.Take(1, claim("a")))
		expect.NoError(t, s.Charge(1, claim("m")))
	}
	expect.OK(t, s.Take(1, claim("b")))
	if err := s.Charge(1, claim("m")); err == nil {
		t.Error("m has two of four, and is charged a third")
	}
	s.Give(1, claim("a"), claim("m"))
	if err := s.Charge(1, claim("m")); err != nil {
		t.Errorf("after one was given back: %v", err)
	}
}

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
		expect.Equal(t, limits.IsShortage(c.err), c.want, "IsShortage(%v) is", c.err)
	}
}

func TestLimit(t *testing.T) {
	if n, err := limits.DescriptorLimit(); n <= 0 || err != nil {
		t.Errorf("the limit is %d, %v", n, err)
	}
}
