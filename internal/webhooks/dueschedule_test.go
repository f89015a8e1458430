package webhooks

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/test/expect"
)

func queueAt(m string, due, seq int64) Queue {
	return Queue{MerchantID: m, Head: at(due), HeadSeq: seq}
}

// at returns a time some milliseconds after the zero time; 0 is the zero time.
func at(ms int64) time.Time { return time.Time{}.Add(time.Duration(ms) * time.Millisecond) }

// TestScheduleLimitsTurns bounds the queues of one lease request.
func TestScheduleLimitsTurns(t *testing.T) {
	s := newSchedule(8)
	for i := range 2 * maxTurns {
		id := fmt.Sprint(i)
		s.add(queueAt(id, 10, 1))
		s.place(s.merchant(id), at(10))
	}
	expect.Len(t, s.take(suspect, 1000, at(10)), maxTurns, "turns at once:")
}

// TestScheduleForgets checks that a merchant is kept if more than its breaker is known.
func TestScheduleForgets(t *testing.T) {
	s := newSchedule(8)
	s.add(queueAt("waits", 1, 1))
	s.merchant("in flight").inFlight = []int64{1}
	s.merchant("leasing").leasing = true
	s.merchant("unreachable").unreachable = true
	s.merchant("idle").breaker.Healthy = true
	s.forget()
	if s.merchants["idle"] != nil || len(s.merchants) != 4 {
		t.Errorf("kept %v", slices.Collect(maps.Keys(s.merchants)))
	}
}

// model is the expected knowledge of a schedule, in the simplest form.
type model struct {
	now   time.Time
	heads map[string]Queue // where a queue begins
	asked map[string]Queue // the queues that had a turn that has not ended, as they were then
	known map[string]*merchant
	// passed holds for each queue that could have had a turn the queues that had one since.
	passed map[string]map[string]bool
}

// newModel returns a schedule and its model.
func newModel() (schedule, *model) {
	s := newSchedule(8)
	return s, &model{
		now: at(1000), heads: make(map[string]Queue), asked: make(map[string]Queue), known: s.merchants,
		passed: make(map[string]map[string]bool),
	}
}

// add records that a queue holds a delivery.
func (m *model) add(k string, q Queue) {
	head, ok := m.heads[k]
	if !ok || q.Before(head) {
		m.heads[k] = q
	} else if !q.End.IsZero() {
		head.End = q.End
		m.heads[k] = head
	}
}

// dueAt returns when a queue is due.
func (m *model) dueAt(k string) time.Time {
	q, merchant := m.heads[k], m.known[k]
	held := clock.Later(merchant.breaker.Until, merchant.backoffUntil)
	if final := q.End.Add(-FinalWindow); !q.End.IsZero() && final.Before(held) {
		held = final
	}
	return clock.Later(q.Head, held)
}

// kindOf returns the reason why a queue waits, and whether it waits for a turn.
func (m *model) kindOf(k string) (kind, bool) {
	_, holds := m.heads[k]
	merchant := m.known[k]
	_, asked := m.asked[k]
	kind := suspect
	if merchant.breaker.Healthy {
		kind = healthy
	}
	if len(merchant.inFlight) >= min(8, max(1, merchant.breaker.Allowed)) {
		kind = full
	}
	return kind, holds && !asked && !merchant.unreachable
}

// due returns the queues of one kind that are due.
func (m *model) due(of kind) (due []string) {
	for k := range m.heads {
		if kind, waits := m.kindOf(k); waits && kind == of && !m.dueAt(k).After(m.now) {
			due = append(due, k)
		}
	}
	return due
}

// next returns when a queue becomes due that does not wait behind another.
func (m *model) next() (next time.Time) {
	for of := range kindCount {
		if len(m.due(of)) > 0 {
			continue
		}
		for k := range m.heads {
			kind, waits := m.kindOf(k)
			if at := m.dueAt(k); waits && kind == of && (next.IsZero() || at.Before(next)) {
				next = at
			}
		}
	}
	return next
}

// took records turns, and returns an error unless they were due and fair: while a queue could have a turn, no other of
// its kind has two.
func (m *model) took(of kind, limit int, taken []Queue) error {
	due := m.due(of)
	for _, q := range taken {
		k := q.MerchantID
		if !slices.Contains(due, k) || q != m.heads[k] {
			return fmt.Errorf("%+v had a turn; due were %+v", q, due)
		}
		due = slices.DeleteFunc(due, func(other string) bool { return other == k })
		m.asked[k] = q
		delete(m.heads, k)
		delete(m.passed, k)
		for _, other := range due {
			if m.passed[other][k] {
				return fmt.Errorf("%+v had two turns while %+v waited", k, other)
			}
			if m.passed[other] == nil {
				m.passed[other] = make(map[string]bool)
			}
			m.passed[other][k] = true
		}
	}
	if len(taken) < limit && len(due) > 0 {
		return fmt.Errorf("%d of %d turns, although %+v are due", len(taken), limit, due)
	}
	// A queue that cannot have a turn now has to wait its full time again later.
	maps.DeleteFunc(m.passed, func(k string, _ map[string]bool) bool {
		return !slices.Contains(m.due(of), k)
	})
	return nil
}

// answered records how a turn left its queue.
func (m *model) answered(k string, q Queue) {
	added, ok := m.heads[k]
	delete(m.asked, k)
	delete(m.heads, k)
	if !q.Head.IsZero() {
		m.heads[k] = q
	}
	if ok {
		m.add(k, added)
	}
}

// TestScheduleProperties compares a schedule with a model: the queues that have a turn are
// due, not blocked, and of the right kind; as many have one as there is room for;
// while one waits, no other has two; and the schedule knows when the next becomes due.
func TestScheduleProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, m := newModel()
		ms := func(name string, from, to int64) time.Time {
			return m.now.Add(time.Duration(rapid.Int64Range(from, to).Draw(t, name)) * time.Millisecond)
		}
		some := func(merchant string) Queue {
			q := queueAt(merchant, 0, rapid.Int64Range(0, 3).Draw(t, "seq"))
			q.Head = ms("head", -50, 50)
			if rapid.Bool().Draw(t, "with end") {
				q.End = ms("end", -50, 50).Add(FinalWindow)
			}
			return q
		}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			k := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "merchant")
			merchant := s.merchant(k)
			changed := func() { delete(m.passed, k) } // it begins to wait anew
			switch rapid.IntRange(0, 7).Draw(t, "what") {
			case 0, 1:
				q := some(k)
				s.add(q)
				m.add(k, q)
			case 2:
				if q, asked := m.asked[k]; asked {
					switch rapid.IntRange(0, 2).Draw(t, "answer") {
					case 0:
						q = some(k)
					case 1:
						q = Queue{MerchantID: k}
					}
					s.putBack(q)
					m.answered(k, q)
				}
			case 3:
				merchant.breaker = Breaker{
					Healthy: rapid.Bool().Draw(t, "healthy"), Allowed: rapid.IntRange(0, 9).Draw(t, "allowed"),
					Until: ms("until", -50, 50),
				}
				changed()
			case 4:
				merchant.inFlight = make([]int64, rapid.IntRange(0, 9).Draw(t, "in flight"))
				changed()
			case 5:
				merchant.unreachable = !merchant.unreachable
				merchant.backoffUntil = ms("backoff", -50, 50)
				changed()
			case 6:
				m.now = ms("passes", 0, 60)
			case 7:
				of := rapid.SampledFrom([]kind{healthy, suspect}).Draw(t, "kind")
				limit := rapid.IntRange(0, 4).Draw(t, "limit")
				expect.OK(t, m.took(of, limit, s.take(of, limit, m.now)))
			}
			s.place(merchant, m.now)
			check(t, s, m)
		}
	})
}

// TestScheduleFairness checks that every queue that is due has a turn before another of its
// kind has two, while many merchants have more deliveries than there is room for.
func TestScheduleFairness(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, m := newModel()
		due := func(merchant string) Queue {
			age := time.Duration(rapid.IntRange(0, 20).Draw(t, "age")) * time.Millisecond
			return Queue{MerchantID: merchant, Head: m.now.Add(-age)}
		}
		merchants := []string{"a", "b", "c", "d", "e", "f"}
		var asked []Queue
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			m.now = m.now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "passes")) * time.Millisecond)
			for len(asked) > 0 && rapid.Bool().Draw(t, "an answer arrives") {
				left := due(asked[0].MerchantID)
				s.putBack(left)
				m.answered(left.MerchantID, left)
				s.place(s.merchant(left.MerchantID), m.now)
				asked = asked[1:]
			}
			q := due(rapid.SampledFrom(merchants).Draw(t, "merchant"))
			s.add(q)
			m.add(q.MerchantID, q)
			s.place(s.merchant(q.MerchantID), m.now)
			limit := rapid.IntRange(0, 3).Draw(t, "limit")
			taken := s.take(suspect, limit, m.now)
			expect.OK(t, m.took(suspect, limit, taken))
			asked = append(asked, taken...)
		}
	})
}

// check compares which queues are due now, and which is next.
func check(t *rapid.T, s schedule, m *model) {
	for of := range kindCount {
		if due := m.due(of); s.turns[of].due(m.now) != (len(due) > 0) {
			t.Fatalf("kind %d is due: %t, want %+v", of, s.turns[of].due(m.now), due)
		}
	}
	if got, want := s.next(m.now), m.next(); !got.Equal(want) {
		t.Fatalf("the next is due at %s, want %s", got, want)
	}
	var got, want []Queue
	s.waiting(func(q Queue) { got = append(got, q) })
	for k, q := range m.heads {
		if _, waits := m.kindOf(k); waits {
			want = append(want, q)
		}
	}
	order := func(a, b Queue) int {
		return cmp.Or(cmp.Compare(a.MerchantID, b.MerchantID), a.Head.Compare(b.Head), cmp.Compare(a.HeadSeq, b.HeadSeq),
			a.End.Compare(b.End))
	}
	slices.SortFunc(got, order)
	slices.SortFunc(want, order)
	if !slices.Equal(got, want) {
		t.Fatalf("%+v wait, want %+v", got, want)
	}
}
