package chain

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/test/expect"
)

// pacedClock is a clock that advances only while something sleeps.
type pacedClock struct{ at time.Time }

func newPaced() (*pacedClock, *pace) {
	c := &pacedClock{time.Unix(1_790_000_000, 0)}
	return c, &pace{now: func() time.Time { return c.at }, sleep: func(ctx context.Context, d time.Duration) error {
		c.at = c.at.Add(d)
		return ctx.Err()
	}}
}

// TestPace calls a node that allows a number of calls per second, whatever a call costs: after the first refusals no
// call is refused for a minute.
func TestPace(t *testing.T) {
	for _, allowed := range []int{5, 6, 20} {
		c, p := newPaced()
		second, used, refused := c.at, 0, 0
		call := func() {
			expect.OK(t, p.admit(t.Context(), 1))
			if c.at.Sub(second) >= time.Second {
				second, used = c.at, 0
			}
			if used++; used > allowed {
				refused++
				p.refused()
			}
		}
		for range 200 {
			call()
		}
		refused, began := 0, c.at
		for c.at.Sub(began) < 2*time.Minute {
			call()
		}
		if refused > 6 {
			t.Errorf("%d calls are refused in two minutes where %d are allowed in a second", refused, allowed)
		}
	}
}

// TestPaceOfCallersThatGiveUp has a caller make 40 calls in a row and start again a second after each refusal, so that
// each second has few calls.
func TestPaceOfCallersThatGiveUp(t *testing.T) {
	for _, allowed := range []int{5, 6, 20} {
		c, p := newPaced()
		second, used, done := c.at, 0, 0
		if err := p.admit(t.Context(), 60); err != nil { // the first batch, which is refused
			t.Fatal(err)
		}
		p.refused()
		attempts := 0
		for ; done < 40 && attempts < 20; attempts++ {
			c.at = c.at.Add(time.Second)
			for done = 0; done < 40; done++ {
				expect.OK(t, p.admit(t.Context(), 1))
				if c.at.Sub(second) >= time.Second {
					second, used = c.at, 0
				}
				if used++; used > allowed {
					p.refused()
					break
				}
			}
		}
		if attempts > 5 {
			t.Errorf("%d attempts to make 40 calls where %d are allowed in a second", attempts, allowed)
		}
	}
}

// TestPaceEdges tests the limits of the pace.
func TestPaceEdges(t *testing.T) {
	_, p := newPaced()
	if err := p.admit(t.Context(), firstPace); err != nil || p.most() != MaxBatch || p.delay(ClassFollowing) != 0 {
		t.Errorf("a node that refused nothing: %d calls at once after %s, %v", p.most(), p.delay(ClassFollowing), err)
	}
	p.refused()
	if p.limit() != 0 {
		t.Errorf("after a failure at %d calls a second the pace is %f", firstPace, p.limit())
	}
	expect.OK(t, p.admit(t.Context(), 1))
	p.refused()
	p.refused() // of the same time
	if p.limit() != firstPace || p.most() != 1 || p.delay(ClassFollowing) != pauseAfterRefusal {
		t.Errorf("after a failure at %d calls a second the pace is %f, after %s", firstPace+1, p.limit(), p.delay(ClassFollowing))
	}
	for _, want := range []float64{2, MinPace, MinPace} {
		for range firstPace {
			expect.OK(t, p.admit(t.Context(), 1))
		}
		if p.refused(); p.limit() != want {
			t.Errorf("after a further failure the pace is %f, want %f", p.limit(), want)
		}
	}
	slow, p := newPaced()
	p.rate = firstPace
	slow.at = slow.at.Add(time.Hour)
	p.changed = slow.at.Add(-pauseAfterRefusal)
	if p.refused(); p.limit() != firstPace {
		t.Errorf("a failure at fewer calls than the pace changes it to %f", p.limit())
	}
	for after, want := range map[time.Duration]float64{paceHeldFor - 1: firstPace, paceHeldFor: 2 * firstPace, 4 * paceHeldFor: maxPace, 5 * paceHeldFor: 0} {
		c, p := newPaced()
		p.rate, p.changed = firstPace, c.at
		c.at = c.at.Add(after)
		if p.recover(c.at); p.limit() != want {
			t.Errorf("%s after a refusal the pace is %f, want %f", after, p.limit(), want)
		}
	}
	set, p := newPaced()
	p.rate, p.setting = 8, 8
	for range 80 {
		expect.OK(t, p.admit(t.Context(), 2))
	}
	if took := set.at.Sub(time.Unix(1_790_000_000, 0)); took < 19*time.Second || took > 20*time.Second || p.limit() != 0 || p.most() != 2 {
		t.Errorf("160 calls took %s at 8 a second; refusals led to %f, %d at once", took, p.limit(), p.most())
	}
	if p.refused(); p.limit() != 4 {
		t.Errorf("after a refusal at 8 calls a second the pace is %f", p.limit())
	}
	set.at = set.at.Add(time.Hour)
	if p.recover(set.at); p.rate != 8 || p.limit() != 0 {
		t.Errorf("the pace grows to %f, above the setting", p.rate)
	}
	var none *pace
	if none.refused(); none.admit(t.Context(), 1) != nil || none.most() != MaxBatch || none.delay(ClassRequest) != 0 || none.limit() != 0 {
		t.Error("a client without a pool has a pace")
	}
}

// TestLostBroadcast calls a node faster than the slowest pace. A broadcast without an answer does not slow the calls
// down, because it is no evidence about their rate. A broadcast that is refused for the rate does, and so does another
// call without an answer.
func TestLostBroadcast(t *testing.T) {
	for name, test := range map[string]struct {
		method string
		status int // 0: the connection breaks
		want   float64
	}{
		"a lost broadcast":            {broadcast, 0, 0},
		"a broadcast, gateway's page": {broadcast, http.StatusBadGateway, 0},
		"a broadcast, too many":       {broadcast, http.StatusTooManyRequests, firstPace},
		"another call":                {"eth_gasPrice", 0, firstPace},
	} {
		t.Run(name, func(t *testing.T) {
			node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				switch {
				case err != nil || !strings.Contains(string(body), test.method):
					_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":"0x5"}`)
				case test.status == 0:
					panic(http.ErrAbortHandler)
				default:
					w.WriteHeader(test.status)
				}
			}))
			defer node.Close()
			c, err := NewClient(ClientConfig{URL: node.URL})
			expect.OK(t, err)
			defer c.Close()
			_, c.pace = newPaced()
			expect.OK(t, c.pace.admit(t.Context(), 2*firstPace-1))
			if err := c.call(t.Context(), new(string), test.method, "0x01"); err == nil {
				t.Fatal("it succeeds")
			}
			if got := c.pace.limit(); got != test.want {
				t.Errorf("the pace is %f, want %f", got, test.want)
			}
		})
	}
}
