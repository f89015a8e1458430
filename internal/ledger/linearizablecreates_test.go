package ledger_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

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
			_, err := lists.Create(w.t.Context(), access.Open(), ids[i], invoice.MerchantChange{Name: &ids[i]})
			w.must(err)
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
