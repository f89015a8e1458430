package ledger_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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
	w.must(all[0].lists.Create(w.t.Context(), access.Open(), w.merchant, invoice.MerchantChange{Name: &w.merchant}))
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

// usedFor is what an idempotency key was used for; zero if it was not used.
type usedFor struct {
	body    int // number of the request
	id      string
	deleted bool // the draft
}

// TestCreatesAreLinearizable creates invoices and drafts with few keys, and deletes the drafts. The first create that is
// not refused uses the key.
func TestCreatesAreLinearizable(t *testing.T) {
	linearizable(t, 12, func(w *world, seed uint64) (usedFor, func(*rand.Rand, int, *process) []observation[usedFor]) {
		others := invoice.Address{0xee, 18: w.address[18], 19: w.address[19]}
		w.create(func(d *invoice.Draft) { d.MerchantID, d.Merchant = w.merchant+"-other", others })
		bodies := []func(*invoice.Draft){
			amount(1_000_000), amount(2_000_000),
			func(d *invoice.Draft) { d.Unissued = true },
			func(d *invoice.Draft) { d.Merchant = others },
		}
		var drafts seen
		return usedFor{}, func(r *rand.Rand, _ int, at *process) []observation[usedFor] {
			room, body := r.IntN(3), r.IntN(len(bodies))
			key := fmt.Sprint(seed, "-", room)
			if id := drafts.pick(r, key); id != "" && r.IntN(4) == 0 {
				err := at.DeleteDraft(w.t.Context(), w.own(), id)
				return []observation[usedFor]{{room, fmt.Sprintf("delete %s: %v", id, err), func(is usedFor) (usedFor, bool) {
					was := is.deleted
					is.deleted = true
					return is, is.id == id && (err == nil && !was || errors.Is(err, db.ErrNotFound) && was)
				}}}
			}
			var replayed bool
			req := ledger.CreateRequest{Draft: w.draft(), ByMerchant: true, Once: ledger.Once{Key: key, Scope: w.merchant, Replayed: &replayed}}
			bodies[body](&req.Draft)
			inv, err := at.Create(w.t.Context(), req)
			if err == nil && inv.Status == invoice.Drafted {
				drafts.add(key, inv.ID)
			}
			text := fmt.Sprintf("create request %d: %s, replayed %t, %v", body, inv.ID, replayed, err)
			return []observation[usedFor]{{room, text, creating(body, body == len(bodies)-1, inv.ID, replayed, err)}}
		}
	})
}

// creating explains the answer to a create, which is refused if its key is unused and its address is another merchant's.
func creating(body int, foreign bool, id string, replayed bool, err error) func(usedFor) (usedFor, bool) {
	return func(is usedFor) (usedFor, bool) {
		var gone *ledger.DraftDeletedError
		unused := is == (usedFor{})
		switch {
		case err == nil && !replayed:
			return usedFor{body: body, id: id}, unused && !foreign
		case err == nil:
			return is, is == usedFor{body: body, id: id}
		case errors.As(err, &gone):
			return is, is == usedFor{body: body, id: gone.InvoiceID, deleted: true}
		case errors.Is(err, ledger.ErrIdempotencyMismatch):
			return is, !unused && is.body != body
		case refusedFor(err) != "":
			return is, unused && foreign
		}
		return is, errors.Is(err, ledger.ErrCreatesWait) // which has no effect
	}
}

const (
	holderCount = 3
	placeCount  = 2
)

// held is which merchants may settle to which addresses. Both are numbered.
type held struct {
	listed [holderCount]int              // the address on a merchant's list, plus one; 0 without a list
	known  [placeCount]bool              // a merchant has or had the address
	claim  [placeCount]int               // the merchant that claimed an address, plus one
	grants [placeCount][holderCount]bool // whether the operator granted the address
}

func (h held) holds(merchant, place int) bool {
	return h.claim[place] == merchant+1 || h.grants[place][merchant]
}

// take returns the state after the operator or a merchant used an address for the merchant, and whether it may.
func (h held) take(merchant, place int, byOperator bool) (held, bool) {
	switch holds := h.holds(merchant, place); {
	case byOperator && !h.grants[place][merchant]:
		h.claim[place], h.grants[place][merchant] = 0, true
	case !holds && h.known[place]:
		return h, false
	case !holds:
		h.claim[place] = merchant + 1
	}
	h.known[place] = true
	return h, true
}

// TestListsAreLinearizable changes merchants' lists of addresses and takes addresses back while creates settle to them.
func TestListsAreLinearizable(t *testing.T) {
	linearizable(t, 6, func(w *world, seed uint64) (held, func(*rand.Rand, int, *process) []observation[held]) {
		var ids [holderCount]string
		lists := access.NewMerchants(access.MerchantConfig{Store: w.db.store, Now: func() time.Time { return at(start) }})
		for i := range ids {
			ids[i] = fmt.Sprintf("%s-%d-%d", w.merchant, seed, i)
			w.must(lists.Create(w.t.Context(), access.Open(), ids[i], invoice.MerchantChange{Name: &ids[i]}))
		}
		return held{}, func(r *rand.Rand, _ int, at *process) []observation[held] {
			u := user{w: w, merchant: r.IntN(holderCount), place: r.IntN(placeCount), byOperator: r.IntN(3) == 0}
			u.id, u.address = ids[u.merchant], invoice.Address{0xad, byte(u.place), byte(seed >> 8), byte(seed), 18: w.address[18], 19: w.address[19]}
			switch r.IntN(6) {
			case 0:
				return u.list(at)
			case 1:
				return u.release(at)
			}
			return u.create(at)
		}
	})
}

// user uses an address for a merchant, with a key of the merchant or of the operator.
type user struct {
	w               *world
	merchant, place int
	byOperator      bool
	id              string
	address         invoice.Address
}

func (u user) seen(call string, err error, explain func(held) (held, bool)) observation[held] {
	return observation[held]{0, fmt.Sprintf("merchant %d, address %d, by the operator %t: %s: %v", u.merchant, u.place, u.byOperator, call, err), explain}
}

func (u user) list(at *process) []observation[held] {
	by := access.Principal{KeyID: "key_1", MerchantID: u.id, Scopes: access.Admin}
	if u.byOperator {
		by = access.Open()
	}
	_, err := at.lists.Update(u.w.t.Context(), by, u.id, invoice.MerchantChange{Allowed: []invoice.AllowedAddress{{ChainKey: u.w.chainKey, Address: u.address}}})
	return []observation[held]{u.seen("list", err, func(h held) (held, bool) {
		after, may := h.take(u.merchant, u.place, u.byOperator)
		if !may {
			return h, refusedFor(err) != ""
		}
		after.listed[u.merchant] = u.place + 1
		return after, err == nil
	})}
}

// release is the operator who takes an address back.
func (u user) release(at *process) []observation[held] {
	err := at.lists.Release(u.w.t.Context(), access.Open(), u.id, u.address)
	return []observation[held]{u.seen("release", err, func(h held) (held, bool) {
		switch {
		case h.listed[u.merchant] == u.place+1:
			return h, refusedFor(err) != ""
		case !h.holds(u.merchant, u.place):
			return h, errors.Is(err, access.ErrNotHeld)
		case h.claim[u.place] == u.merchant+1:
			h.claim[u.place] = 0
		}
		h.grants[u.place][u.merchant] = false
		return h, err == nil
	})}
}

// create reads the list before the transaction that takes the address, so that these are two steps.
func (u user) create(at *process) []observation[held] {
	d := u.w.draft()
	d.MerchantID, d.Merchant = u.id, u.address
	_, err := at.Create(u.w.t.Context(), ledger.CreateRequest{Draft: d, ByMerchant: !u.byOperator})
	unlisted := strings.HasPrefix(refusedFor(err), "is not on the merchant's list")
	return []observation[held]{
		u.seen("create, read the list", err, func(h held) (held, bool) {
			return h, unlisted == (h.listed[u.merchant] != 0 && h.listed[u.merchant] != u.place+1)
		}),
		u.seen("create, take the address", err, func(h held) (held, bool) {
			if unlisted {
				return h, true
			}
			after, may := h.take(u.merchant, u.place, u.byOperator)
			return after, may && err == nil || !may && refusedFor(err) != ""
		}),
	}
}

// refusedFor returns why a request was refused, or "".
func refusedFor(err error) string {
	var field *invoice.FieldError
	if !errors.As(err, &field) {
		return ""
	}
	return field.Detail
}
