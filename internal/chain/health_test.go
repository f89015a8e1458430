package chain

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
)

// model computes a node's expected state from the events.
type model struct {
	asked, failing                 bool
	row, quarantines               int
	backoffUntil, quarantinedUntil time.Time
	number, time                   int64 // of the highest head since it was last quarantined
	last, lastTime                 int64 // of its last head
	headed, lags                   bool
	slowUntil                      time.Time
	misconfigured                  bool
	misconfiguredUntil             time.Time
	calls, failedRequest           uint64
}

func (m *model) state(now time.Time) State {
	switch {
	case m.quarantinedUntil.After(now):
		return StateQuarantined
	case m.misconfigured && m.misconfiguredUntil.After(now):
		return StateMisconfigured
	case m.backoffUntil.After(now):
		return StateBackoff
	case m.slowUntil.After(now):
		return StateLagging
	case !m.asked, m.failing:
		return StateUnknown
	case m.lags:
		return StateLagging
	}
	return StateOK
}

func (m *model) quarantine(now time.Time) {
	if m.quarantinedUntil.After(now) {
		return
	}
	if now.Sub(m.quarantinedUntil) > 24*time.Hour {
		m.quarantines = 0
	}
	m.quarantines++
	m.quarantinedUntil = now.Add(min(10*time.Minute<<(m.quarantines-1), 6*time.Hour))
}

// TestPoolStates makes random things happen to random nodes, and compares the pool's state with a model.
func TestPoolStates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1_790_000_000, 0)
		n := rapid.IntRange(1, 4).Draw(t, "nodes")
		conf := PoolConfig{
			Chain: Chain{Key: "test"}, Now: func() time.Time { return now }, Logger: slog.New(slog.DiscardHandler),
		}
		models := map[*Node]*model{}
		for i := range n {
			e, err := NewClient(ClientConfig{URL: fmt.Sprintf("http://p%d.example", i)})
			expect.OK(t, err)
			defer e.Close()
			conf.Clients = append(conf.Clients, e)
		}
		pool := NewPool(conf)
		for _, p := range pool.Nodes() {
			models[p] = &model{}
		}
		pick := func(t *rapid.T) (*Node, *model) {
			p := pool.Nodes()[rapid.IntRange(0, n-1).Draw(t, "node")]
			return p, models[p]
		}
		fail := func(m *model, pause time.Duration) {
			if m.backoffUntil.After(now) {
				if wanted := now.Add(pause); wanted.After(m.backoffUntil) {
					m.backoffUntil = wanted
				}
				return
			}
			if now.Sub(m.backoffUntil) >= time.Minute {
				m.row = 0
			}
			m.row++
			m.failing = true
			m.backoffUntil = now.Add(max(pause, min(time.Second<<min(m.row-1, 10), time.Minute)))
		}
		t.Repeat(map[string]func(*rapid.T){
			"time passes": func(t *rapid.T) {
				longest := rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour, 48 * time.Hour}).Draw(t, "about")
				now = now.Add(time.Duration(rapid.Int64Range(0, int64(longest)).Draw(t, "passed")))
			},
			"a call": func(t *rapid.T) {
				p, m := pick(t)
				p.onRequest(ClassFollowing, 3, time.Second, nil)
				m.asked, m.calls = true, m.calls+3
			},
			"a failed call": func(t *rapid.T) {
				p, m := pick(t)
				p.onRequest(ClassFollowing, 2, time.Second, errors.New("lost"))
				m.asked, m.calls, m.failedRequest = true, m.calls+2, m.failedRequest+1
			},
			"it fails": func(t *rapid.T) {
				p, m := pick(t)
				p.ReportFailure(errors.New("connection refused"))
				fail(m, 0)
			},
			"it is asked too often": func(t *rapid.T) {
				p, m := pick(t)
				pause := time.Duration(rapid.Int64Range(0, int64(2*time.Hour)).Draw(t, "wants"))
				p.ReportFailure(&callError{retryAfter: pause, err: rpc.HTTPError{StatusCode: http.StatusTooManyRequests}})
				fail(m, min(pause, time.Hour))
			},
			"an answer that refuses": func(t *rapid.T) {
				p, _ := pick(t)
				p.ReportFailure(&callError{method: "eth_sendRawTransaction", err: &jsonRPCError{Code: -32000, Message: "nonce too low"}})
			},
			"it works": func(t *rapid.T) {
				p, m := pick(t)
				p.ReportSuccess()
				m.failing = false
				if m.backoffUntil.After(now) {
					m.backoffUntil = now
				}
			},
			"it contradicts": func(t *rapid.T) {
				p, m := pick(t)
				p.Quarantine("wrong answer")
				m.quarantine(now)
			},
			"it is slow": func(t *rapid.T) {
				p, m := pick(t)
				p.ReportSlow("recorded nothing")
				m.slowUntil = now.Add(10 * time.Minute)
			},
			"it is checked against the configuration": func(t *rapid.T) {
				p, m := pick(t)
				if m.misconfigured = rapid.Bool().Draw(t, "misconfigured"); m.misconfigured {
					m.misconfiguredUntil = now.Add(time.Minute)
					p.setConfigured(ErrMismatch)
					return
				}
				p.setConfigured(nil)
			},
			"it reports a head": func(t *rapid.T) {
				p, m := pick(t)
				number := rapid.Int64Range(0, 200).Draw(t, "number")
				at := number * rapid.SampledFrom([]int64{0, 1, 12}).Draw(t, "block time")
				back := m.number-number > 64 && m.time-at > 30
				if err := p.ReportHead(Header{Header: invoice.Header{Number: uint64(number), Time: invoice.Unix(at)}}); (err != nil) != back {
					t.Errorf("head %d after %d: %v", number, m.number, err)
				}
				if back {
					m.quarantine(now)
				}
				if back || number >= m.number {
					m.number, m.time = number, at
				}
				m.last, m.lastTime, m.headed = number, at, true
				others, ahead := 0, 0
				for _, other := range models {
					if s := other.state(now); other != m && other.headed && s != StateQuarantined && s != StateMisconfigured {
						if s != StateBackoff {
							others++
						}
						if other.last-number >= 3 && other.lastTime-at >= 15 {
							ahead++
						}
					}
				}
				m.lags = ahead >= 2 || ahead == 1 && others < 2
			},
			"": func(t *rapid.T) { check(t, pool, models, now) },
		})
	})
}

// check compares the pool's answers with its nodes' models.
func check(t *rapid.T, pool *Pool, models map[*Node]*model, now time.Time) {
	of := map[State][]*Node{}
	all := pool.Nodes()
	for i, p := range all {
		m, h := models[p], pool.Health()[i]
		s := m.state(now)
		of[s] = append(of[s], p)
		until := map[State]time.Time{StateQuarantined: m.quarantinedUntil, StateMisconfigured: m.misconfiguredUntil, StateBackoff: m.backoffUntil}[s]
		if h.State != s || !h.Until.Equal(until) || (h.Reason == "") != (s == StateOK || s == StateUnknown && !(m.asked && m.failing)) {
			t.Errorf("%s is %s until %s (%s), want %s until %s", p, h.State, h.Until, h.Reason, s, until)
		}
		if h.FailingSince.IsZero() == m.failing || m.failing && (h.LastError == "" || h.LastErrorAt.Before(h.FailingSince)) {
			t.Errorf("%s fails since %s, last at %s (%s), want it to fail: %t", p, h.FailingSince, h.LastErrorAt, h.LastError, m.failing)
		}
		if h.Calls.Total() != m.calls || h.Errors != m.failedRequest || h.Head != uint64(m.last) {
			t.Errorf("%s counts %+v, want %+v", p, h, m)
		}
	}
	var want []*Node
	for _, p := range all {
		if s := models[p].state(now); s == StateOK || s == StateUnknown {
			want = append(want, p)
		}
	}
	want = append(want, of[StateLagging]...)
	if len(want) == 0 {
		want = of[StateBackoff]
		slices.SortStableFunc(want, func(a, b *Node) int { return models[a].backoffUntil.Compare(models[b].backoffUntil) })
	}
	if len(want) == 0 {
		want = append(of[StateQuarantined], of[StateMisconfigured]...)
		end := func(p *Node) time.Time {
			if m := models[p]; m.state(now) == StateMisconfigured {
				return m.misconfiguredUntil
			}
			return models[p].quarantinedUntil
		}
		slices.SortStableFunc(want, func(a, b *Node) int {
			return cmp.Or(end(a).Compare(end(b)), cmp.Compare(slices.Index(all, a), slices.Index(all, b)))
		})
	}
	if got := pool.Usable(); !slices.Equal(got, want) || len(got) == 0 {
		t.Errorf("usable are %v, want %v", got, want)
	}
	others := slices.DeleteFunc(slices.Clone(want), func(p *Node) bool { return p == all[0] })
	if got := pool.Others(all[0]); !slices.Equal(got, others) {
		t.Errorf("others than %s are %v, want %v", all[0], got, others)
	}
	height := rapid.Int64Range(0, 200).Draw(t, "height")
	want = slices.DeleteFunc(want, func(p *Node) bool {
		m := models[p]
		s := m.state(now)
		return s != StateOK && s != StateUnknown && (s != StateLagging || m.last < height)
	})
	if got := pool.Having(uint64(height)); !slices.Equal(got, want) {
		t.Errorf("%v have block %d, want %v", got, height, want)
	}
}

// TestOnChange records the reported changes of a sequence of events.
func TestOnChange(t *testing.T) {
	e, err := NewClient(ClientConfig{URL: "http://p.example/s3cret"})
	expect.OK(t, err)
	defer e.Close()
	now := time.Unix(1_790_000_000, 0)
	var reported []State
	p := NewPool(PoolConfig{
		Clients: []*Client{e}, Now: func() time.Time { return now }, Logger: slog.New(slog.DiscardHandler),
		OnChange: func(h Health) {
			expect.Equal(t, h.Node, "http://p.example", "node")
			reported = append(reported, h.State)
		},
	}).Nodes()[0]
	lost := errors.New("lost")
	for _, happens := range []func(){
		func() { p.onRequest(ClassFollowing, 1, time.Second, nil) }, // ok
		func() { p.onRequest(ClassFollowing, 1, time.Second, nil) },
		func() { p.ReportFailure(lost) }, // backoff
		func() { p.ReportFailure(lost) }, // the same pause
		p.ReportSuccess,                  // ok
		p.ReportSuccess,
		func() { p.setConfigured(ErrMismatch) },    // misconfigured
		func() { now = now.Add(2 * RecheckAfter) }, // ok again
		func() { p.setConfigured(nil) },
		func() { p.Quarantine("wrong answer") }, // quarantined
		func() { p.Quarantine("wrong answer") }, // the same pause
	} {
		happens()
	}
	if want := []State{StateOK, StateBackoff, StateOK, StateMisconfigured, StateQuarantined}; !slices.Equal(reported, want) {
		t.Errorf("reported %q, want %q", reported, want)
	}
	if h := p.pool.Health()[0]; h.Calls.Total() != 2 || h.Latency != time.Second || h.Reason != "wrong answer" {
		t.Errorf("health is %+v", h)
	}
}

// lone returns the only node of a pool, at a time that the test moves.
func lone(t *testing.T, now *time.Time, logger *slog.Logger) *Node {
	t.Helper()
	e, err := NewClient(ClientConfig{URL: "http://p.example"})
	expect.OK(t, err)
	t.Cleanup(e.Close)
	pool := NewPool(PoolConfig{Clients: []*Client{e}, Now: func() time.Time { return *now }, Logger: logger})
	return pool.Nodes()[0]
}

// TestThresholds tests each limit at its value and just beyond.
func TestThresholds(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	start := time.Unix(1_790_000_000, 0)

	for wanted, want := range map[time.Duration]time.Duration{MaxRetryAfter - 1: MaxRetryAfter - 1, MaxRetryAfter + 1: MaxRetryAfter} {
		now := start
		p := lone(t, &now, quiet)
		p.ReportFailure(&callError{retryAfter: wanted, err: rpc.HTTPError{StatusCode: http.StatusTooManyRequests}})
		expect.Equal(t, p.pool.Health()[0].Until.Sub(now), want, "asked for a pause of %s, it is", wanted)
	}

	const bothAgo = int64(MaxRegressTime / time.Second)
	for _, c := range []struct {
		blocks uint64
		time   int64
		back   bool
	}{{MaxRegress, bothAgo + 1, false}, {MaxRegress + 1, bothAgo, false}, {MaxRegress + 1, bothAgo + 1, true}} {
		now := start
		p := lone(t, &now, quiet)
		first := p.ReportHead(Header{Header: invoice.Header{Number: 1000, Time: invoice.Unix(1000)}})
		err := p.ReportHead(Header{Header: invoice.Header{Number: 1000 - c.blocks, Time: invoice.Unix(1000 - c.time)}})
		if first != nil || (err != nil) != c.back || (p.pool.Health()[0].State == StateQuarantined) != c.back {
			t.Errorf("%d blocks and %d s back: %v, %v; went backwards: %t", c.blocks, c.time, first, err, c.back)
		}
	}

	const behind = int64(LagTime / time.Second)
	for _, c := range []struct {
		blocks uint64
		time   int64
		lags   bool
	}{{LagBlocks - 1, behind, false}, {LagBlocks, behind - 1, false}, {LagBlocks, behind, true}} {
		var reported [2]*Node
		conf := PoolConfig{Now: time.Now, Logger: quiet}
		for _, url := range []string{"http://a.example", "http://b.example"} {
			e, err := NewClient(ClientConfig{URL: url})
			expect.OK(t, err)
			t.Cleanup(e.Close)
			conf.Clients = append(conf.Clients, e)
		}
		copy(reported[:], NewPool(conf).Nodes())
		for i, h := range []Header{{Header: invoice.Header{Number: 1000, Time: invoice.Unix(1000)}}, {Header: invoice.Header{Number: 1000 - c.blocks, Time: invoice.Unix(1000 - c.time)}}} {
			reported[i].onRequest(ClassFollowing, 1, 0, nil)
			expect.NoError(t, reported[i].ReportHead(h))
		}
		if h := reported[0].pool.Health(); h[0].State != StateOK || (h[1].State == StateLagging) != c.lags {
			t.Errorf("%d blocks and %d s behind: %+v; lags: %t", c.blocks, c.time, h, c.lags)
		}
	}

	for later, want := range map[time.Duration]time.Duration{QuarantinesResetAfter: 2 * MinQuarantine, QuarantinesResetAfter + 1: MinQuarantine} {
		now := start
		p := lone(t, &now, quiet)
		p.Quarantine("wrong answer")
		now = now.Add(MinQuarantine + later)
		p.Quarantine("wrong answer")
		expect.Equal(t, p.pool.Health()[0].Until.Sub(now), want, "quarantined again %s after the pause: for", later)
	}
}

// TestMisconfiguredIsLoggedOnce checks a misconfigured node repeatedly.
func TestMisconfiguredIsLoggedOnce(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	var log strings.Builder
	p := lone(t, &now, slog.New(slog.NewTextHandler(&log, nil)))
	for _, failure := range []error{ErrMismatch, ErrMismatch, nil, ErrMismatch} {
		now = now.Add(RecheckAfter)
		p.setConfigured(failure)
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 2 {
		t.Errorf("it was said %d times, want once for each time that it came to be:\n%s", n, &log)
	}
}

func TestBackoffs(t *testing.T) {
	for n, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 6: 32 * time.Second, 7: time.Minute, 1e6: time.Minute} {
		expect.Equal(t, failureBackoff.after(n), want, "pause %d in a row is", n)
	}
	expect.Equal(t, quarantineBackoff.after(6), 320*time.Minute, "the sixth quarantine is")
	expect.Equal(t, quarantineBackoff.after(7), MaxQuarantine, "the seventh quarantine is")
	for jitter, want := range map[float64]time.Duration{0: 8 * time.Second, 0.5: 10 * time.Second, 1: 12 * time.Second} {
		p := &Pool{conf: PoolConfig{Jitter: func() float64 { return jitter }}}
		if got := p.jitter(10 * time.Second); got.Round(time.Millisecond) != want {
			t.Errorf("a pause of 10s with jitter %g is %s, want %s", jitter, got, want)
		}
	}
}
