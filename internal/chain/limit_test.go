package chain

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestLimit finds a node's limit, stays near it without many refusals, and notices when the limit is raised.
func TestLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]Kind{KindRange, KindHeaders, KindReceipts, KindReceiptsOfBlock}).Draw(t, "kind")
		l := newLimit(kind, NodeSettings{}, time.Now)
		allowed := rapid.Uint64Range(l.least, 2*l.most).Draw(t, "allowed")
		ask := func() (n uint64, refused bool) {
			n = l.Next()
			if n < l.least || n > l.most {
				t.Fatalf("asks for %d", n)
			}
			switch {
			case n > allowed:
				if !l.Refused(n) && l.least > 0 {
					t.Fatalf("gives up at %d, of which %d are allowed", n, allowed)
				}
				return n, true
			case n > 0:
				l.Answered(n)
			}
			return n, false
		}
		for range 100 {
			ask()
		}
		refusals, asked := 0, uint64(0)
		for range 200 {
			n, refused := ask()
			asked += n
			if refused {
				refusals++
			}
		}
		if refusals > 30 {
			t.Fatalf("%d of 200 requests are refused where %d is allowed", refusals, allowed)
		}
		if asked < 200*min(allowed, l.most)/2 {
			t.Fatalf("asks for %d on average where %d is allowed", asked/200, allowed)
		}
		if s, told := l.status(); told && s.Refused <= allowed || allowed < l.most/2 && !told {
			t.Fatalf("status %+v, %t where %d is allowed", s, told, allowed)
		}
		allowed = 2 * l.most
		for range 5000 {
			ask()
		}
		if n := l.Next(); n != l.most {
			t.Fatalf("asks for %d where nothing is refused, want %d", n, l.most)
		}
	})
}

// TestLimitSettings starts from the settings of a node.
func TestLimitSettings(t *testing.T) {
	s := NodeSettings{MaxBatch: 7, MaxRange: 9}
	for kind, want := range map[Kind]uint64{KindHeaders: 7, KindHeads: 7, KindLogs: 7, KindReceipts: 7, KindCalls: 7, KindRequestCalls: 7, KindRange: 9, KindBlocks: MaxBlocks, KindReceiptsOfBlock: 1} {
		l := newLimit(kind, s, time.Now)
		for range 200 {
			if n := l.Next(); n != want {
				t.Fatalf("%s: asks for %d, want %d", kind, n, want)
			}
			l.Answered(want)
		}
		if _, told := l.status(); told {
			t.Errorf("%s: a setting is shown as a refusal", kind)
		}
	}
}

// TestLimitEdges requests the smallest possible size.
func TestLimitEdges(t *testing.T) {
	l := newLimit(KindHeaders, NodeSettings{MaxBatch: 1}, time.Now)
	if l.Refused(1) || l.Next() != 1 {
		t.Error("asks for less than one call")
	}
	r := newLimit(KindRange, NodeSettings{MaxRange: 1}, time.Now)
	if r.Refused(1) || r.Next() != 0 {
		t.Error("asks for a range that was refused, though there is another way")
	}
	for n := 2; n < retryRefusedAfter; n++ {
		if r.Next() != 0 {
			t.Fatalf("tries again after %d, want %d", n, retryRefusedAfter)
		}
	}
	if r.Next() != 1 {
		t.Errorf("does not try again after %d", retryRefusedAfter)
	}
	r.Answered(1)
	if r.Next() != 1 {
		t.Error("does not use what was answered")
	}
	r.Fit(0)
	if r.Next() != 1 {
		t.Error("fits to nothing")
	}
}

// TestCallRate makes two calls a second for two hours, and then one a minute.
func TestCallRate(t *testing.T) {
	var r callRate
	now, calls := time.Unix(1_800_000_000, 0), uint64(0)
	if got := r.perDay(now, 0); got != 0 {
		t.Errorf("without a call: %d", got)
	}
	pass := func(d, every time.Duration, n uint64) {
		for end := now.Add(d); now.Before(end); now = now.Add(every) {
			r.observe(now, calls)
			calls += n
		}
	}
	pass(30*time.Second, time.Second, 2)
	if got := r.perDay(now, calls); got != 0 {
		t.Errorf("after half a minute: %d", got)
	}
	pass(2*time.Hour, time.Second, 2)
	if got := r.perDay(now, calls); got < 172_000 || got > 173_600 {
		t.Errorf("with two calls a second: %d a day", got)
	}
	pass(2*time.Hour, time.Minute, 1)
	if got := r.perDay(now, calls); got < 1400 || got > 1480 {
		t.Errorf("with a call a minute: %d a day", got)
	}
	if got := r.perDay(now.Add(-5*time.Hour), calls); got != 0 {
		t.Errorf("with a clock that was set back: %d", got)
	}
}
