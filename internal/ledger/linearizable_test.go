package ledger_test

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
)

var linearizableCount = flag.Uint64("linearizable.count", 10, "how many rounds of concurrent requests to replicas to play on each database; two with -short")

// The size of a round.
const (
	replicaCount  = 3
	callsPerRound = 48
	checkTime     = time.Minute // bounds the search for an order of a round's calls
)

// observation is what a client learned from a call, or from one of the steps of a call.
type observation[S comparable] struct {
	room int    // calls in different rooms concern different rows
	text string // the call and its answer
	// explain returns the state after the call, and whether the call can have this answer in a state.
	explain func(S) (after S, possible bool)
}

// round makes the rows of a round. It returns the state of each room, and a function that makes a random
// call to a replica.
type round[S comparable] func(w *world, seed uint64) (S, func(r *rand.Rand, client int, at *process) []observation[S])

// linearizable plays rounds on both databases. In a round, several clients call three replicas. There must be
// an order of the calls in which a single process could have given the same answers, and in which a call that ended
// before another one began precedes it.
func linearizable[S comparable](t *testing.T, clients int, play round[S]) {
	t.Helper()
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		replicas := w.replicas()
		count := *linearizableCount
		if testing.Short() {
			count = min(count, 2)
		}
		for seed := *propertySeed; seed < *propertySeed+count && !t.Failed(); seed++ {
			start, call := play(w, seed)
			for room, history := range record(seed, clients, replicas, call) {
				if fault := unexplained(start, history); fault != "" {
					t.Errorf("seed %d, room %d: %s\nthe order of calls differs in each run; to search: go test ./internal/ledger -run '^%s$' -property.seed=%d -linearizable.count=100",
						seed, room, fault, t.Name(), seed)
				}
			}
		}
	})
}

// record lets the clients make their calls, and returns the history of each room.
func record[S comparable](seed uint64, clients int, replicas []*process, call func(*rand.Rand, int, *process) []observation[S]) map[int][]porcupine.Operation {
	var clock atomic.Int64
	var mu sync.Mutex
	var all sync.WaitGroup
	histories := make(map[int][]porcupine.Operation)
	for client := range clients {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(client)))
			for range callsPerRound / clients {
				began := clock.Add(1)
				observed := call(r, client, replicas[client%replicaCount])
				ended := clock.Add(1)
				mu.Lock()
				for _, o := range observed {
					histories[o.room] = append(histories[o.room], porcupine.Operation{ClientId: client, Input: o, Call: began, Return: ended})
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return histories
}

// unexplained returns "" if an order of the calls explains their answers. Otherwise it describes the calls.
func unexplained[S comparable](start S, history []porcupine.Operation) string {
	model := porcupine.Model{
		Init: func() any { return start },
		Step: func(state, input, _ any) (bool, any) {
			after, possible := input.(observation[S]).explain(state.(S))
			return possible, after
		},
	}
	switch porcupine.CheckOperationsTimeout(model, history, checkTime) {
	case porcupine.Ok:
		return ""
	case porcupine.Unknown:
		return fmt.Sprintf("no order was found within %s", checkTime)
	case porcupine.Illegal:
	}
	_, info := porcupine.CheckOperationsVerbose(model, history, checkTime)
	partial := info.PartialLinearizationsOperations()[0]
	longest := slices.MaxFunc(partial, func(a, b []porcupine.Operation) int { return cmp.Compare(len(a), len(b)) })
	shown := make(map[string]bool)
	text := "these calls explain each other in this order,"
	show := func(ops []porcupine.Operation) {
		for _, op := range ops {
			line := fmt.Sprintf("\n\t%3d to %3d, client %d: %s", op.Call, op.Return, op.ClientId, op.Input.(observation[S]).text)
			if !shown[line] {
				shown[line] = true
				text += line
			}
		}
	}
	show(longest)
	text += "\nbut none of these can follow:"
	slices.SortFunc(history, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	show(history)
	return text
}

// process is one of several processes on the world's database.
type process struct {
	*ledger.Service
	lists *access.MerchantManager
	store *db.DB
}

// replicas returns replicas that know the world's merchant. Each has its own connections on PostgreSQL, and reads
// merchants anew for each create: a list that another replica changed may take effect a second later, which is no fault.
func (w *world) replicas() []*process {
	w.t.Helper()
	var ticks atomic.Int64
	later := func() time.Time { return time.Unix(start+ticks.Add(1), 0) }
	all := make([]*process, replicaCount)
	for i := range all {
		r := &process{store: w.db.store}
		if i > 0 && w.db.store.Shared() {
			r.store = dbtest.Open(w.t, w.db.url)
		}
		r.lists = access.NewMerchants(access.MerchantConfig{Store: r.store, Chains: []string{w.chainKey}, Now: later})
		r.Service = w.service(func(c *ledger.Config) { c.Store, c.Merchants = r.store, managed{r.lists} })
		all[i] = r
	}
	_, err := all[0].lists.Create(w.t.Context(), access.Open(), w.merchant, invoice.MerchantChange{Name: &w.merchant})
	w.must(err)
	return all
}

// seen has the ids that clients have seen, by what they belong to.
type seen struct {
	mu  sync.Mutex
	ids map[string][]string
}

func (s *seen) add(of, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids == nil {
		s.ids = make(map[string][]string)
	}
	if !slices.Contains(s.ids[of], id) {
		s.ids[of] = append(s.ids[of], id)
	}
}

// pick returns one of the newest two ids, or "".
func (s *seen) pick(r *rand.Rand, of string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := s.ids[of]
	if len(ids) == 0 {
		return ""
	}
	return ids[len(ids)-1-r.IntN(min(2, len(ids)))]
}
