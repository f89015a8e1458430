package server

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// world is a database, a clock, and the replicas of a service.
type world struct {
	store  *db.DB
	works  []string
	now    time.Time
	living []*replica
}

type replica struct {
	*Share

	able    bool
	changed []string
}

func (w *world) start() *replica {
	r := &replica{able: true}
	r.Share = newReplicas(replicaConfig{
		Store: w.store, Holder: fmt.Sprintf("%s, replica %d", w.works[0], w.now.UnixNano()), Works: w.works,
		Able:    func(string) bool { return r.able },
		Changed: func(work string) { r.changed = append(r.changed, work) },
		Now:     func() time.Time { return w.now },
		Logger:  slog.New(slog.DiscardHandler),
	})
	w.now = w.now.Add(time.Millisecond) // another id for each
	w.living = append(w.living, r)
	return r
}

// contextTB is a test, or a case of a property test.
type contextTB interface {
	rapid.TB
	Context() context.Context
}

// pass runs a round of each replica, in an order.
func (w *world) pass(t contextTB, order []int) {
	w.now = w.now.Add(roundEvery)
	for _, i := range order {
		expect.OK(t, w.living[i].round(t.Context(), w.now))
		w.check(t)
	}
}

// check fails if two replicas have the same work.
func (w *world) check(t contextTB) {
	t.Helper()
	for _, work := range w.works {
		if has := w.having(work); len(has) > 1 {
			t.Fatalf("%d replicas have %s", len(has), work)
		}
	}
}

func (w *world) having(work string) (has []*replica) {
	for _, r := range w.living {
		if r.Has(work) {
			has = append(has, r)
		}
	}
	return has
}

// owners returns which of the living replicas has each work, or -1.
func (w *world) owners() (owners []int) {
	for _, work := range w.works {
		owners = append(owners, slices.IndexFunc(w.living, func(r *replica) bool { return r.Has(work) }))
	}
	return owners
}

// TestShares starts, stops, kills and disables replicas. Each work has at most one owner at any time. Afterwards each
// work has an owner if there is an able one, all have about the same number, and no work moves any more.
func TestShares(t *testing.T) {
	s, cases := dbtest.Open(t, dbtest.SQLite(t)), 0
	rapid.Check(t, func(t *rapid.T) {
		cases++
		w := &world{store: s, now: time.Unix(1_800_000_000, 0)}
		for i := range rapid.IntRange(1, 5).Draw(t, "works") {
			w.works = append(w.works, fmt.Sprintf("case %d, work %d", cases, i))
		}
		w.start()
		for range rapid.IntRange(1, 15).Draw(t, "steps") {
			w.act(t)
			w.pass(t, w.order(t))
		}
		for range 12 {
			w.pass(t, w.order(t))
		}
		settled := w.owners()
		w.checkShares(t, settled)
		for range 4 {
			w.pass(t, w.order(t))
			if owners := w.owners(); !slices.Equal(owners, settled) {
				t.Fatalf("work moved from %v to %v though nothing happened", settled, owners)
			}
		}
	})
}

func (w *world) order(t *rapid.T) []int {
	order := make([]int, len(w.living))
	for i := range order {
		order[i] = i
	}
	return rapid.Permutation(order).Draw(t, "order")
}

// act applies a random change to the replicas. One of them always remains.
func (w *world) act(t *rapid.T) {
	i := rapid.IntRange(0, len(w.living)-1).Draw(t, "replica")
	switch action := rapid.SampledFrom([]string{"nothing", "start", "kill", "stop", "disable", "enable"}).Draw(t, "action"); {
	case action == "start" && len(w.living) < 4:
		w.start()
	case action == "kill" && len(w.living) > 1:
		w.living = slices.Delete(w.living, i, i+1)
	case action == "stop" && len(w.living) > 1:
		expect.OK(t, w.store.LeaveWork(t.Context(), w.living[i].conf.Holder))
		w.living = slices.Delete(w.living, i, i+1)
	case action == "disable":
		w.living[i].able = false
	case action == "enable":
		w.living[i].able = true
	}
}

func (w *world) checkShares(t *rapid.T, owners []int) {
	load := make([]int, len(w.living))
	for work, owner := range owners {
		if owner < 0 {
			t.Fatalf("nobody does %s", w.works[work])
		}
		load[owner]++
	}
	var able, others []int
	for i, r := range w.living {
		switch left := slices.ContainsFunc(w.works, func(work string) bool { return w.now.Before(r.unwanted[work]) }); {
		case !r.able:
			others = append(others, load[i])
		case !left: // it takes everything that is free
			able = append(able, load[i])
		}
	}
	if len(able) > 0 && len(others) > 0 && slices.Max(others) > 0 {
		t.Fatalf("replicas that are unable have %v pieces of work, and able ones %v", others, able)
	}
	if len(able) > 0 && slices.Max(able)-slices.Min(able) > 1 {
		t.Fatalf("the replicas have %v pieces of work", able)
	}
}

// TestTakeover kills one replica and stops another. Their work is taken over, in the first case within 5 seconds.
func TestTakeover(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		w := &world{store: s, works: []string{"a", "b"}, now: time.Unix(1_800_000_000, 0)}
		one := w.start()
		w.pass(t, []int{0})
		if !one.Has("a") || !one.Has("b") || !slices.Equal(one.changed, []string{"a", "b"}) {
			t.Fatalf("the first replica has %v after a round, want both", w.owners())
		}
		two := w.start()
		for range 3 {
			w.pass(t, []int{0, 1})
		}
		if owners := w.owners(); owners[0] == owners[1] {
			t.Fatalf("one replica does everything: %v", owners)
		}
		w.living = w.living[1:] // the first dies
		died, took := w.now, time.Duration(0)
		for !two.Has("a") || !two.Has("b") {
			if w.pass(t, []int{0}); w.now.Sub(died) > 5*time.Second {
				t.Fatal("the work of a dead replica was not taken over in 5 seconds")
			}
			took = w.now.Sub(died)
		}
		t.Logf("taken over after %v", took)
		three := w.start()
		expect.OK(t, s.LeaveWork(t.Context(), two.conf.Holder))
		w.living = []*replica{three}
		w.pass(t, []int{0})
		if !three.Has("a") || !three.Has("b") {
			t.Error("the work of a replica that has stopped is not taken over at once")
		}
	})
}

// TestLostDatabase checks that a replica does not rely on its lease longer than others do.
func TestLostDatabase(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		w := &world{store: s, works: []string{"a"}, now: time.Unix(1_800_000_000, 0)}
		one := w.start()
		w.pass(t, []int{0})
		w.now = w.now.Add(leaseTTL - time.Millisecond)
		if !one.Has("a") {
			t.Error("the lease ended early")
		}
		w.now = w.now.Add(time.Millisecond)
		if one.Has("a") {
			t.Error("a replica counts on a lease that has ended")
		}
	})
}
