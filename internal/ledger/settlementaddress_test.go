package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// managed adapts a manager of merchants, all of which want events.
type managed struct{ *access.MerchantManager }

func (managed) WantsEvents(context.Context, db.Querier, string) (bool, error) { return true, nil }

// manage creates merchants with a manager that applies lists immediately.
func (w *world) manage(ids ...string) *access.MerchantManager {
	w.t.Helper()
	m := access.NewMerchants(access.MerchantConfig{
		Store: w.db.store, Chains: []string{w.chainKey}, Now: func() time.Time { return time.Unix(w.seconds.Load(), 0) },
	})
	for _, id := range ids {
		w.must(m.Create(w.t.Context(), access.Open(), id, invoice.MerchantChange{Name: &id}))
	}
	w.Service = w.service(func(c *ledger.Config) { c.Merchants = managed{m} })
	return m
}

// createAt creates an invoice of a merchant that settles to an address, with a key of the merchant or of the operator.
func (w *world) createAt(merchantID string, to invoice.Address, byMerchant bool) (invoice.Invoice, error) {
	d := w.draft()
	d.MerchantID, d.Merchant = merchantID, to
	return w.Create(w.t.Context(), ledger.CreateRequest{Draft: d, ByMerchant: byMerchant})
}

// isRefused reports whether a create was refused because of its address. Any other error fails the test.
func (w *world) isRefused(err error) bool {
	w.t.Helper()
	field := (*invoice.FieldError)(nil)
	if err != nil && (!errors.As(err, &field) || field.Field != "merchantAddress") {
		w.t.Fatal(err)
	}
	return err != nil
}

// TestOperatorTakesAnAddressBack checks what a merchant can no longer do with an address that it
// claimed, after the operator used it for another merchant.
func TestOperatorTakesAnAddressBack(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		squatter, rightful := w.merchant+"-squatter", w.merchant+"-rightful"
		lists := w.manage(squatter, rightful)
		inv, err := w.createAt(squatter, w.address, true)
		w.must(err)
		p := w.unattributedPayment(start+1, invoice.NewAmount(77))
		if _, err := w.createAt(rightful, w.address, true); !w.isRefused(err) {
			t.Fatal("the address was used by two merchants")
		}
		name := "Rightful"
		w.must(lists.Update(t.Context(), access.Open(), rightful, invoice.MerchantChange{
			Name: &name, Allowed: []invoice.AllowedAddress{{ChainKey: w.chainKey, Address: w.address}},
		}))
		if _, err := w.createAt(squatter, w.address, true); !w.isRefused(err) {
			t.Error("a merchant that lost the address can use it")
		}
		w.must(w.createAt(rightful, w.address, true))
		_, err = w.AttributeManually(open(t), ledger.ManualAttribution{PaymentID: p.ID, InvoiceID: inv.ID, By: "x", MerchantID: squatter})
		expect.Error(t, db.ErrNotFound, "a merchant that lost the address attributes its payment")(err)
		entries, err := access.NewReader(w.db.store).AuditEntries(t.Context(), access.AuditFilter{MerchantID: squatter, Action: access.ActionAddressLost, Limit: 9})
		w.must(err)
		if len(entries) != 1 || entries[0].Object != squatter || entries[0].Actor != access.ActorOpen && entries[0].Actor != access.ActorService {
			t.Errorf("the log has %+v", entries)
		}
	})
}

// TestOperatorEditKeepsAClaim has the operator edit objects by which a merchant claimed an address. That grants the
// merchant only addresses that the operator names, so it still loses its claim to the owner.
func TestOperatorEditKeepsAClaim(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		squatter, owner := w.merchant+"-squatter", w.merchant+"-owner"
		lists := w.manage(squatter, owner)
		list := func(by access.Principal, merchant string, all ...invoice.Address) {
			t.Helper()
			c := invoice.MerchantChange{}
			for _, a := range all {
				c.Allowed = append(c.Allowed, invoice.AllowedAddress{ChainKey: w.chainKey, Address: a})
			}
			w.seconds.Add(1)
			w.must(second(lists.Update(t.Context(), by, merchant, c)))
		}
		own := access.Principal{KeyID: "key_1", MerchantID: squatter, Scopes: access.Admin}
		drafted, listed, named := invoice.Address{0xad, 1}, invoice.Address{0xad, 2}, invoice.Address{0xad, 3}

		d := w.draft()
		d.MerchantID, d.Merchant, d.Unissued = squatter, drafted, true
		draft, err := w.Create(t.Context(), ledger.CreateRequest{Draft: d, ByMerchant: true})
		w.must(err)
		_, err = w.UpdateInvoice(t.Context(), access.Open(), draft.ID, ledger.InvoiceChange{Amount: new(invoice.NewAmount(5_000_000))})
		w.must(err)
		_, err = w.Finalize(t.Context(), access.Open(), draft.ID)
		w.must(err)
		list(own, squatter, listed)
		list(access.Open(), squatter, listed, named)
		list(access.Open(), owner, drafted, listed, named)

		entries, err := access.NewReader(w.db.store).AuditEntries(t.Context(), access.AuditFilter{MerchantID: squatter, Action: access.ActionAddressLost, Limit: 9})
		w.must(err)
		if len(entries) != 2 {
			t.Errorf("the merchant lost %+v; want the addresses that it claimed", entries)
		}
		if _, err := w.createAt(squatter, listed, true); !w.isRefused(err) {
			t.Error("the merchant still holds the address of its list")
		}
		if _, err := w.createAt(squatter, named, true); err != nil {
			t.Errorf("the merchant does not hold the address that the operator named: %v", err)
		}
	})
}

func second[T any](_ T, err error) error { return err }

// TestHoldersModel plays random creates, lists, payments and manual attributions by the operator and by merchants that
// share four addresses. An address belongs to the first merchant that used or listed it, until the operator uses or
// lists it for others. No merchant creates invoices at, sees payments to, or attributes payments to an address that it
// does not hold, and each sees all payments to its own.
func TestHoldersModel(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *database) {
		rapid.Check(t, func(r *rapid.T) {
			m := newHolders(d.world(t))
			r.Repeat(map[string]func(*rapid.T){
				"create": m.create, "list": m.list, "pay": m.pay, "attribute": m.attribute,
				"restart": func(*rapid.T) { m.Service = m.service(func(c *ledger.Config) { c.Merchants = managed{m.lists} }) },
				"":        m.check,
			})
		})
	})
}

// holders is the model of TestHoldersModel.
type holders struct {
	*world
	lists     *access.MerchantManager
	ids       []string // of merchants
	addresses []invoice.Address
	claimed   map[invoice.Address]string          // the merchant with the claim in force
	granted   map[invoice.Address][]string        // the merchants to which the operator granted it
	allowed   map[string][]invoice.Address        // lists, by merchant
	invoices  map[string][]invoice.Invoice        // by merchant
	shown     map[string]map[string]bool          // unattributed payments that a merchant must see, by merchant and id
	payments  map[string]ledger.PaymentRow        // without an invoice, by id
	names     map[string]map[invoice.Address]bool // addresses that a merchant's invoices named
}

func newHolders(w *world) *holders {
	m := &holders{
		world: w, claimed: make(map[invoice.Address]string), granted: make(map[invoice.Address][]string), allowed: make(map[string][]invoice.Address),
		invoices: make(map[string][]invoice.Invoice), shown: make(map[string]map[string]bool), payments: make(map[string]ledger.PaymentRow),
		names: make(map[string]map[invoice.Address]bool),
	}
	for i := range 4 {
		m.ids = append(m.ids, fmt.Sprint(w.merchant, "-", i))
		m.addresses = append(m.addresses, invoice.Address{0xac, byte(i), 18: w.address[18], 19: w.address[19]})
		m.shown[m.ids[i]], m.names[m.ids[i]] = make(map[string]bool), make(map[invoice.Address]bool)
	}
	m.lists = w.manage(m.ids...)
	return m
}

func (m *holders) holds(id string, a invoice.Address) bool {
	return m.claimed[a] == id || slices.Contains(m.granted[a], id)
}

// claim claims an address, and reports whether the merchant then holds it.
func (m *holders) claim(id string, a invoice.Address) bool {
	if m.claimed[a] == "" && len(m.granted[a]) == 0 {
		m.claimed[a] = id
	}
	return m.holds(id, a)
}

func (m *holders) grant(id string, a invoice.Address) {
	if loser := m.claimed[a]; loser != "" && loser != id {
		for p := range m.shown[loser] {
			if m.payments[p].To == a {
				delete(m.shown[loser], p)
			}
		}
	}
	m.claimed[a] = ""
	if !m.holds(id, a) {
		m.granted[a] = append(m.granted[a], id)
	}
}

func (m *holders) create(r *rapid.T) {
	id, to := rapid.SampledFrom(m.ids).Draw(r, "merchant"), rapid.SampledFrom(m.addresses).Draw(r, "address")
	byMerchant := rapid.Bool().Draw(r, "by the merchant")
	m.seconds.Add(1)
	inv, err := m.createAt(id, to, byMerchant)
	allowed := len(m.allowed[id]) == 0 || slices.Contains(m.allowed[id], to)
	if allowed && byMerchant {
		allowed = m.claim(id, to)
	} else if allowed {
		m.grant(id, to)
	}
	if refused := m.isRefused(err); refused == allowed {
		r.Fatalf("refused: %t, want %t", refused, !allowed)
	}
	if allowed {
		m.invoices[id] = append(m.invoices[id], inv)
		m.names[id][to] = true
	}
}

func (m *holders) list(r *rapid.T) {
	id := rapid.SampledFrom(m.ids).Draw(r, "merchant")
	list := rapid.SliceOfNDistinct(rapid.SampledFrom(m.addresses), 1, 2, rapid.ID[invoice.Address]).Draw(r, "list")
	by := access.Open()
	if rapid.Bool().Draw(r, "by the merchant") {
		by = access.Principal{KeyID: "key_1", MerchantID: id, Scopes: access.Admin}
	}
	c := invoice.MerchantChange{}
	for _, a := range list {
		c.Allowed = append(c.Allowed, invoice.AllowedAddress{ChainKey: m.chainKey, Address: a})
	}
	m.seconds.Add(1)
	_, err := m.lists.Update(m.t.Context(), by, id, c)
	possible := by.IsOperator() || !slices.ContainsFunc(list, func(a invoice.Address) bool {
		return !m.holds(id, a) && (m.claimed[a] != "" || len(m.granted[a]) > 0)
	})
	if field := (*invoice.FieldError)(nil); possible && err != nil || !possible && !errors.As(err, &field) {
		r.Fatalf("%v; possible: %t", err, possible)
	}
	if !possible {
		return
	}
	added := func(a invoice.Address) bool { return !slices.Contains(m.allowed[id], a) }
	same := len(list) == len(m.allowed[id]) && !slices.ContainsFunc(list, added)
	for _, a := range list {
		switch {
		case !by.IsOperator():
			m.claim(id, a)
		case added(a), same && !m.holds(id, a):
			m.grant(id, a)
		}
	}
	m.allowed[id] = list
}

// pay mines a payment that no rule attributes.
func (m *holders) pay(r *rapid.T) {
	t := m.world.pay(invoice.NewAmount(uint64(50 + m.txs)))
	t.To = rapid.SampledFrom(m.addresses).Draw(r, "to")
	m.mine(m.head().Time.Unix()+1, t)
	if !slices.ContainsFunc(m.ids, func(id string) bool { return m.names[id][t.To] }) {
		return // no merchant has used the address
	}
	p := m.payment(t)
	m.payments[p.ID] = p
	for _, id := range m.ids {
		if m.holds(id, t.To) && m.names[id][t.To] {
			m.shown[id][p.ID] = true
		}
	}
}

// attribute attributes a payment to an invoice of a merchant, with the merchant's key.
func (m *holders) attribute(r *rapid.T) {
	id := rapid.SampledFrom(m.ids).Draw(r, "merchant")
	if len(m.payments) == 0 || len(m.invoices[id]) == 0 {
		return
	}
	ids := make([]string, 0, len(m.payments))
	for p := range m.payments {
		ids = append(ids, p)
	}
	slices.Sort(ids)
	p := m.payments[rapid.SampledFrom(ids).Draw(r, "payment")]
	inv := rapid.SampledFrom(m.invoices[id]).Draw(r, "invoice")
	_, err := m.AttributeManually(open(m.t), ledger.ManualAttribution{PaymentID: p.ID, InvoiceID: inv.ID, By: "maria", MerchantID: id})
	switch field := (*invoice.FieldError)(nil); {
	case !m.shown[id][p.ID]:
		if !errors.Is(err, db.ErrNotFound) {
			r.Fatalf("a payment that the merchant does not see: %v", err)
		}
	case inv.Merchant != p.To:
		if !errors.As(err, &field) {
			r.Fatalf("a payment to another address: %v", err)
		}
	default:
		m.must(err)
		delete(m.payments, p.ID)
		for _, other := range m.ids {
			delete(m.shown[other], p.ID)
		}
	}
}

// check compares what merchants see with the model.
func (m *holders) check(r *rapid.T) {
	for _, id := range m.ids {
		m.merchant = id
		seen := m.unattributed()
		for _, p := range seen {
			if !m.holds(id, m.payments[p].To) {
				r.Fatalf("%s sees a payment to %s, which it does not hold", id, m.payments[p].To)
			}
			if !m.shown[id][p] {
				r.Fatalf("%s sees %s", id, p)
			}
		}
		if len(seen) != len(m.shown[id]) {
			r.Fatalf("%s sees %d payments, want %d", id, len(seen), len(m.shown[id]))
		}
	}
}

// TestReleasedAddress takes an address from a merchant. Its open invoice is paid as before, also late;
// the merchant gets no other invoice there, neither by a create nor from a draft.
func TestReleasedAddress(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		lists := w.manage(w.merchant, w.merchant+"-2")
		open, second := w.create(), w.create()
		draft := w.drafted()
		unattributed := w.unattributedPayment(start+1, invoice.NewAmount(77))
		release := func() error { return lists.Release(t.Context(), access.Open(), w.merchant, w.address) }
		name, listed := "Shop", []invoice.AllowedAddress{{ChainKey: w.chainKey, Address: w.address}}
		w.must(lists.Update(t.Context(), access.Open(), w.merchant, invoice.MerchantChange{Name: &name, DefaultAddresses: map[string]invoice.Address{w.chainKey: w.address}}))
		if field := (*invoice.FieldError)(nil); !errors.As(release(), &field) || field.Field != "address" {
			t.Errorf("a default address was released: %v", release())
		}
		_, err := lists.Update(t.Context(), access.Open(), w.merchant, invoice.MerchantChange{DefaultAddresses: map[string]invoice.Address{}})
		w.must(err)
		expect.Error(t, access.ErrForbidden, "by the merchant")(lists.Release(t.Context(), w.own(), w.merchant, w.address))
		other := access.Principal{MerchantID: "x", Scopes: access.Admin}
		expect.Error(t, access.ErrNotFound, "by another")(lists.Release(t.Context(), other, w.merchant, w.address))
		w.must(release())
		expect.Error(t, access.ErrNotHeld, "again")(release())

		if _, err := w.createAt(w.merchant, w.address, true); !w.isRefused(err) {
			t.Error("an invoice settles to an address that was taken back")
		}
		if _, err := w.createAt(w.merchant+"-2", w.address, true); !w.isRefused(err) {
			t.Error("a key of another merchant claims the address")
		}
		if _, err := w.Finalize(t.Context(), w.own(), draft.ID); !w.isRefused(err) {
			t.Error("a draft is issued at an address that was taken back")
		}
		paid := w.pay(open.TransferAmount)
		w.mine(start+10, paid)
		w.final()
		if got := w.invoice(open.ID); got.Status != invoice.Paid {
			t.Errorf("the invoice that was open is %s after it was paid", got.Status)
		}
		w.advance(second.ExpiresAt.Unix() + 1)
		late := w.pay(second.TransferAmount)
		w.mine(second.ExpiresAt.Unix()+2, late)
		w.final()
		if got := w.invoice(second.ID); got.Status != invoice.Expired || got.Exception != invoice.Late {
			t.Errorf("the other invoice is %s, %s after a late payment", got.Status, got.Exception)
		}
		if got := w.unattributed(); len(got) != 0 {
			t.Errorf("the merchant sees %v, among them perhaps %s", got, unattributed.ID)
		}
		entries, err := access.NewReader(w.db.store).AuditEntries(t.Context(), access.AuditFilter{MerchantID: w.merchant, Action: access.ActionAddressRelease, Limit: 9})
		w.must(err)
		if len(entries) != 1 || entries[0].Object != w.merchant || entries[0].After != "" || entries[0].Before == "" {
			t.Errorf("the log has %+v", entries)
		}

		w.must(lists.Update(t.Context(), access.Open(), w.merchant, invoice.MerchantChange{Allowed: listed, Immediately: true}))
		w.must(w.createAt(w.merchant, w.address, true))
	})
}
