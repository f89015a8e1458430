package ledger_test

import (
	crand "crypto/rand"
	"flag"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/quittance/quittance/internal/test/dbtest"
)

// The number of cases to play of each property, and the seed of the first one. The seeds are consecutive.
var (
	propertySeed    = flag.Uint64("property.seed", 1, "seed of the first case of a property")
	propertyCount   = flag.Uint64("property.count", 500, "how many cases of each property to play in memory, or half as many long ones; a 25th with -short")
	propertyOnDisks = flag.Uint64("property.stored", 4, "how many cases of each property to play on each database; one with -short")
)

// properties plays cases of a property, each a function of its seed: count in memory, and some on each database. open
// returns a ledger of a new chain. A case returns a description of the fault, or "".
func properties(t *testing.T, count uint64, play func(open func() *reader, random *rand.Rand) string) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		playCases(t, count, func() func(*rand.Rand) string {
			return func(r *rand.Rand) string { return play(func() *reader { return inMemory(t) }, r) }
		})
	})
	each(t, func(t *testing.T, d *database) {
		playCases(t, *propertyOnDisks, func() func(*rand.Rand) string {
			return func(r *rand.Rand) string { return play(func() *reader { return onDatabase(d.unstarted(t)) }, r) }
		})
	})
}

// storedProperties plays cases of a property on SQLite.
func storedProperties(t *testing.T, play func(d *database, random *rand.Rand) string) {
	t.Helper()
	playCases(t, 5**propertyOnDisks, func() func(*rand.Rand) string {
		d := &database{store: dbtest.Open(t, dbtest.SQLite(t))}
		return func(r *rand.Rand) string { return play(d, r) }
	})
}

// playCases plays cases with several workers.
func playCases(t *testing.T, count uint64, worker func() func(random *rand.Rand) string) {
	t.Helper()
	if testing.Short() {
		count = (count + 24) / 25
	}
	var next, failed atomic.Uint64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		play := worker()
		workers.Go(func() {
			for {
				seed := next.Add(1) - 1 + *propertySeed
				if seed >= *propertySeed+count || failed.Load() >= 5 || t.Failed() && failed.Load() == 0 {
					return
				}
				if wrong := play(rand.New(rand.NewPCG(seed, 0))); wrong != "" {
					failed.Add(1)
					t.Errorf("seed %d: %s\nagain: go test ./internal/ledger -run '^%s$' -property.seed=%d -property.count=1", seed, wrong, t.Name(), seed)
				}
			}
		})
	}
	workers.Wait()
	t.Logf("%d cases from seed %d on", count, *propertySeed)
}

// pick returns one of the values.
func pick[V any](r *rand.Rand, of ...V) V { return of[r.IntN(len(of))] }

// narrow is a source of randomness that yields numbers of two bytes below a bound, so that the first
// choices of suffixes are few.
type narrow struct {
	*rand.Rand
	high, below byte // the first byte, and the bound of the second
}

// Read fills two bytes in this way, and longer slices like any source.
func (n narrow) Read(into []byte) (int, error) {
	if len(into) != 2 {
		return crand.Read(into)
	}
	into[0], into[1] = n.high, byte(n.IntN(int(n.below)))
	return len(into), nil
}
