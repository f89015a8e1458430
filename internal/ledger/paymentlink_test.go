package ledger_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

const linkStart = 1_764_000_000

var (
	till      = invoice.Address{1}
	linkToken = invoice.Address{0x70}
	operator  = access.Open()
	acme      = access.Principal{KeyID: "key_1", MerchantID: "acme", Scopes: access.Standard}
	globex    = access.Principal{KeyID: "key_2", MerchantID: "globex", Scopes: access.Standard}
)

// linkWorld is a manager on a real store, with a clock.
type linkWorld struct {
	*ledger.PaymentLinkManager
	merchants *access.MerchantManager
	db        *db.DB
	mu        sync.Mutex
	now       time.Time
}

func (w *linkWorld) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *linkWorld) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// directory is the merchants without endpoints.
type directory struct{ *access.MerchantManager }

func (directory) WantsEvents(context.Context, db.Querier, string) (bool, error) { return false, nil }

// eachLinks runs a test on both databases, with the merchants acme and globex.
func eachLinks(t *testing.T, test func(t *testing.T, w *linkWorld)) {
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		w := &linkWorld{db: store, now: time.Unix(linkStart, 0)}
		w.merchants = access.NewMerchants(access.MerchantConfig{Store: store, Chains: []string{"base"}, Now: w.clock})
		base, _ := chain.Lookup("base")
		base.Tokens = []chain.Token{{Currency: "USDC", Address: linkToken, Decimals: 6}}
		service := ledger.New(ledger.Config{Store: store, Chains: []chain.Chain{base}, Merchants: directory{w.merchants}, Now: w.clock, Rand: rand.Reader})
		w.PaymentLinkManager = ledger.NewPaymentLinks(ledger.PaymentLinkConfig{Store: store, Ledger: service, Holders: w.merchants, Now: w.clock})
		for _, id := range []string{"acme", "globex"} {
			name := strings.ToUpper(id)
			expect.Success(t)(w.merchants.Create(t.Context(), operator, id, invoice.MerchantChange{Name: &name}))
		}
		update(t, store, func(ctx context.Context, tx *db.Tx) error {
			_, err := ledger.InsertChain(ctx, tx, "base", invoice.Header{Number: 9, Hash: invoice.Hash{9}, Time: time.Unix(linkStart, 0)}, nil)
			return err
		})
		test(t, w)
	})
}

func update(t *testing.T, store *db.DB, fn func(ctx context.Context, tx *db.Tx) error) {
	t.Helper()
	expect.OK(t, store.Update(t.Context(), func(tx *db.Tx) error { return fn(t.Context(), tx) }))
}

// espresso asks for a link with a fixed amount.
func espresso() ledger.PaymentLinkRequest {
	return ledger.PaymentLinkRequest{MerchantID: "acme", Slug: "espresso", Terms: invoice.PaymentLinkTerms{
		Title: "An espresso", Amount: invoice.NewAmount(4_900_000), Currency: "USDC", ChainKey: "base", Merchant: till,
		LineItem: "Espresso", ReferencePrefix: "bar-", ReturnURL: "https://shop.example/thanks?token=secret",
	}}
}

func (w *linkWorld) create(t *testing.T, r ledger.PaymentLinkRequest) invoice.PaymentLink {
	t.Helper()
	l, err := w.Create(t.Context(), acme, r)
	expect.OK(t, err)
	return l
}

func fieldOf(err error) string {
	if wrong := (*invoice.FieldError)(nil); errors.As(err, &wrong) {
		return wrong.Field
	}
	return ""
}

// TestOperatorEditsALink has the operator edit a link by which the merchant claimed an address. The merchant still loses
// the claim to another merchant.
func TestOperatorEditsALink(t *testing.T) {
	eachLinks(t, func(t *testing.T, w *linkWorld) {
		l := w.create(t, espresso())
		expect.Success(t)(w.Update(t.Context(), operator, l.ID, invoice.PaymentLinkChange{Title: new("A cup")}))
		expect.Success(t)(w.merchants.Update(t.Context(), operator, "globex", invoice.MerchantChange{Allowed: []invoice.AllowedAddress{{ChainKey: "base", Address: till}}}))
		lost, err := access.NewReader(w.db).AuditEntries(t.Context(), access.AuditFilter{MerchantID: "acme", Action: access.ActionAddressLost, Limit: 9})
		if err != nil || len(lost) != 1 {
			t.Errorf("the merchant lost %+v, %v", lost, err)
		}
	})
}

func TestCreatePaymentLink(t *testing.T) {
	eachLinks(t, func(t *testing.T, w *linkWorld) {
		l := w.create(t, espresso())
		if l.Lifetime != invoice.DefaultLinkLifetime || l.Archived || !strings.HasPrefix(l.ID, "lnk_") {
			t.Errorf("created %+v", l)
		}
		if got, err := w.Get(t.Context(), acme, l.ID); err != nil || got != l {
			t.Errorf("read %+v, %v; want %+v", got, err, l)
		}
		expect.Error(t, db.ErrNotFound, "another merchant reads it")(w.Get(t.Context(), globex, l.ID))
		expect.Error(t, ledger.ErrSlugTaken, "the slug again")(w.Create(t.Context(), acme, espresso()))
		other := espresso()
		other.MerchantID, other.Terms.Merchant = "globex", invoice.Address{2}
		if _, err := w.Create(t.Context(), globex, other); err != nil {
			t.Errorf("the slug of another merchant: %v", err)
		}
		r := espresso()
		r.Slug = ""
		if random := w.create(t, r); len(random.Slug) != 10 || !invoice.ValidSlug(random.Slug) {
			t.Errorf("the random slug is %q", random.Slug)
		}
		entries, err := access.NewReader(w.db).AuditEntries(t.Context(), access.AuditFilter{Action: access.ActionLinkCreate, Limit: 9})
		if err != nil || len(entries) != 3 || entries[2].Object != l.ID || entries[2].MerchantID != "acme" || strings.Contains(entries[2].After, "secret") {
			t.Errorf("the log: %+v, %v", entries, err)
		}
	})
}

// TestCreateRefuses expects the name of the first wrong field.
func TestCreateRefuses(t *testing.T) {
	eachLinks(t, func(t *testing.T, w *linkWorld) {
		w.create(t, espresso())
		for _, c := range []struct {
			field  string
			change func(*ledger.PaymentLinkRequest)
		}{
			{"slug", func(r *ledger.PaymentLinkRequest) { r.Slug = "Espresso" }},
			{"slug", func(r *ledger.PaymentLinkRequest) { r.Slug = "a--b" }},
			{"slug", func(r *ledger.PaymentLinkRequest) { r.Slug = strings.Repeat("a", invoice.MaxSlug+1) }},
			{"title", func(r *ledger.PaymentLinkRequest) { r.Terms.Title = "" }},
			{"title", func(r *ledger.PaymentLinkRequest) { r.Terms.Title = strings.Repeat("x", invoice.MaxLabel+1) }},
			{"description", func(r *ledger.PaymentLinkRequest) {
				r.Terms.Description = strings.Repeat("x", invoice.MaxDescription+1)
			}},
			{"referencePrefix", func(r *ledger.PaymentLinkRequest) {
				r.Terms.ReferencePrefix = strings.Repeat("x", invoice.MaxReferencePrefix+1)
			}},
			{"minAmount", func(r *ledger.PaymentLinkRequest) { r.Terms.Minimum = invoice.NewAmount(1) }},
			{"maxAmount", func(r *ledger.PaymentLinkRequest) { r.Terms.Maximum = invoice.NewAmount(1) }},
			{"maxAmount", func(r *ledger.PaymentLinkRequest) {
				r.Terms.Amount, r.Terms.Minimum, r.Terms.Maximum = invoice.Amount{}, invoice.NewAmount(2), invoice.NewAmount(1)
			}},
			{"expiresIn", func(r *ledger.PaymentLinkRequest) { r.Terms.Lifetime = invoice.MinLinkLifetime - time.Second }},
			{"expiresIn", func(r *ledger.PaymentLinkRequest) { r.Terms.Lifetime = invoice.MaxLifetime + time.Second }},
			{"chainKey", func(r *ledger.PaymentLinkRequest) { r.Terms.ChainKey = "moon" }},
			{"currency", func(r *ledger.PaymentLinkRequest) { r.Terms.Currency = "EURC" }},
			{"collection", func(r *ledger.PaymentLinkRequest) { r.Terms.Collection = invoice.Deposit }}, // without a factory
			{"returnUrl", func(r *ledger.PaymentLinkRequest) { r.Terms.ReturnURL = "javascript:alert(1)" }},
			{"merchantAddress", func(r *ledger.PaymentLinkRequest) { r.Terms.Merchant = invoice.Address{} }}, // without a default
			{"merchantAddress", func(r *ledger.PaymentLinkRequest) { r.Terms.Merchant = linkToken }},
			{"merchantId", func(r *ledger.PaymentLinkRequest) { r.MerchantID = "nobody" }},
			{"merchantId", func(r *ledger.PaymentLinkRequest) { r.MerchantID = ".." }},
		} {
			r := espresso()
			r.Slug = "another"
			c.change(&r)
			if _, err := w.Create(t.Context(), acme, r); fieldOf(err) != c.field {
				t.Errorf("%+v: %v, want an error of %s", r, err, c.field)
			}
		}
		theirs := espresso()
		theirs.MerchantID = "globex"
		if _, err := w.Create(t.Context(), globex, theirs); fieldOf(err) != "merchantAddress" {
			t.Errorf("another merchant takes the address: %v", err)
		}
		edge := espresso()
		edge.Slug, edge.Terms.ReferencePrefix, edge.Terms.Lifetime = strings.Repeat("a", invoice.MaxSlug), strings.Repeat("x", invoice.MaxReferencePrefix), invoice.MaxLifetime
		l := w.create(t, edge)
		if inv, err := w.Pay(t.Context(), l, l.Amount, "visit"); err != nil || len(inv.Details.Reference) > invoice.MaxLabel {
			t.Errorf("at the limits: %+v, %v", inv, err)
		}
	})
}

func TestCreateWithKey(t *testing.T) {
	eachLinks(t, func(t *testing.T, w *linkWorld) {
		r := espresso()
		var replayed bool
		r.Key, r.Scope, r.Replayed = "k", "merchant acme", &replayed
		first := w.create(t, r)
		if replayed {
			t.Error("the first request is marked as a repeat")
		}
		title := "Two espressos"
		expect.Success(t)(w.Update(t.Context(), acme, first.ID, invoice.PaymentLinkChange{Title: &title}))
		if again := w.create(t, r); again.ID != first.ID || again.Title != title || !replayed {
			t.Errorf("repeated: %+v", again)
		}
		r.Terms.Title = "Tea"
		expect.Error(t, ledger.ErrIdempotencyMismatch, "another request with the key")(w.Create(t.Context(), acme, r))
		r.Scope, r.Slug = "", "tea"
		if _, err := w.Create(t.Context(), operator, r); err != nil {
			t.Errorf("the key in another scope: %v", err)
		}
		// Of requests that arrive together, one creates the link.
		together := espresso()
		together.Slug, together.Key, together.Scope = "together", "t", "merchant acme"
		ids := make([]string, 8)
		var group sync.WaitGroup
		for i := range ids {
			group.Go(func() {
				l, err := w.Create(t.Context(), acme, together)
				expect.NoError(t, err)
				ids[i] = l.ID
			})
		}
		group.Wait()
		for _, id := range ids {
			if id != ids[0] {
				t.Errorf("they created %v", ids)
			}
		}
	})
}

func TestUpdate(t *testing.T) {
	eachLinks(t, func(t *testing.T, w *linkWorld) {
		l := w.create(t, espresso())
		least, most, none, collection, text, url := invoice.NewAmount(1_000_000), invoice.MaxAmount, invoice.Amount{}, invoice.Direct, "With sugar", "https://shop.example/cart"
		changed, err := w.Update(t.Context(), acme, l.ID, invoice.PaymentLinkChange{
			Amount: &none, Minimum: &least, Maximum: &most, Collection: &collection, Description: &text, CancelURL: &url,
		})
		if err != nil || !changed.IsFree() || changed.Minimum != least || changed.Maximum != most || changed.Description != text || changed.CancelURL != url || changed.Title != l.Title {
			t.Fatalf("changed: %+v, %v", changed, err)
		}
		if got, err := w.Get(t.Context(), acme, l.ID); err != nil || got != changed {
			t.Errorf("read: %+v, %v", got, err)
		}
		if _, err := w.Update(t.Context(), globex, l.ID, invoice.PaymentLinkChange{Archived: true}); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("by another merchant: %v", err)
		}
		moon := "moon"
		if _, err := w.Update(t.Context(), acme, l.ID, invoice.PaymentLinkChange{ChainKey: &moon}); fieldOf(err) != "chainKey" {
			t.Errorf("to another chain: %v", err)
		}
		for range 2 { // archiving again has no effect
			if got, err := w.Update(t.Context(), acme, l.ID, invoice.PaymentLinkChange{Archived: true}); err != nil || !got.Archived {
				t.Errorf("archived: %+v, %v", got, err)
			}
		}
		if _, err := w.Update(t.Context(), acme, l.ID, invoice.PaymentLinkChange{ChainKey: &moon}); !errors.Is(err, ledger.ErrArchived) {
			t.Errorf("a change of an archived link: %v", err)
		}
		if found, err := w.Find(t.Context(), "acme", "espresso"); err != nil || found.ID != l.ID {
			t.Errorf("by its slug: %+v, %v", found, err)
		}
		next := w.create(t, espresso())
		if found, err := w.Find(t.Context(), "acme", "espresso"); err != nil || found.ID != next.ID {
			t.Errorf("by the slug of two: %+v, %v", found, err)
		}
		entries, err := access.NewReader(w.db).AuditEntries(t.Context(), access.AuditFilter{MerchantID: "acme", Limit: 4})
		var actions []access.Action
		for _, e := range entries {
			actions = append(actions, e.Action)
		}
		want := []access.Action{access.ActionLinkCreate, access.ActionLinkArchive, access.ActionLinkUpdate, access.ActionLinkCreate}
		if diff := cmp.Diff(want, actions); diff != "" || err != nil {
			t.Errorf("the log: %v (-want +got)\n%s", err, diff)
		}
	})
}

// TestPay makes invoices: one for each visit and amount, even if it is requested again.
func TestPay(t *testing.T) {
	eachLinks(t, func(t *testing.T, w *linkWorld) {
		l := w.create(t, espresso())
		pay := func(l invoice.PaymentLink, amount invoice.Amount, visit string) invoice.Invoice {
			t.Helper()
			inv, err := w.Pay(t.Context(), l, amount, visit)
			expect.OK(t, err)
			return inv
		}
		first := pay(l, l.Amount, "a")
		if first.Amount != l.Amount || first.Merchant != till || first.MerchantID != "acme" || !first.ExpiresAt.Equal(w.clock().Add(time.Hour)) ||
			first.Details.Description != "An espresso" || first.Details.Metadata[invoice.MetadataPaymentLink] != l.ID ||
			!strings.HasPrefix(first.Details.Reference, "bar-") || first.LineItems[0] != (invoice.LineItem{Label: "Espresso", Amount: l.Amount}) {
			t.Errorf("made %+v", first)
		}
		w.pass(time.Minute) // the expiry would be different
		if again := pay(l, l.Amount, "a"); again.ID != first.ID || !again.ExpiresAt.Equal(first.ExpiresAt) {
			t.Errorf("the same visit made %s and %s", first.ID, again.ID)
		}
		second := pay(l, l.Amount, "b")
		if second.ID == first.ID || second.Details.Reference == first.Details.Reference {
			t.Errorf("another visit made %+v", second)
		}
		of, _, err := ledger.NewReader(w.db).Invoices(t.Context(), ledger.InvoiceFilter{Metadata: []ledger.MetadataPair{{Key: invoice.MetadataPaymentLink, Value: l.ID}}, Limit: 9})
		if err != nil || len(of) != 2 {
			t.Errorf("the link's invoices are %+v, %v", of, err)
		}
		expect.Error(t, ledger.ErrAmount, "another amount than the link's")(w.Pay(t.Context(), l, invoice.NewAmount(1), "c"))

		free := espresso()
		free.Slug, free.Terms.Amount, free.Terms.Minimum, free.Terms.Maximum = "free", invoice.Amount{}, invoice.NewAmount(10), invoice.NewAmount(20)
		l = w.create(t, free)
		for amount, ok := range map[uint64]bool{0: false, 9: false, 10: true, 20: true, 21: false} {
			if _, err := w.Pay(t.Context(), l, invoice.NewAmount(amount), "d"); (err == nil) != ok || !ok && !errors.Is(err, ledger.ErrAmount) {
				t.Errorf("%d: %v", amount, err)
			}
		}
		if pay(l, invoice.NewAmount(10), "d").ID == pay(l, invoice.NewAmount(20), "d").ID {
			t.Error("two amounts of a visit are one invoice")
		}
		title := "Another"
		changed, err := w.Update(t.Context(), acme, l.ID, invoice.PaymentLinkChange{Title: &title})
		if err != nil || pay(changed, invoice.NewAmount(10), "d").ID == pay(l, invoice.NewAmount(10), "d").ID {
			t.Errorf("a link that was changed makes the former invoice: %v", err)
		}
		archived, err := w.Update(t.Context(), acme, l.ID, invoice.PaymentLinkChange{Archived: true})
		expect.OK(t, err)
		expect.Error(t, ledger.ErrArchived, "an archived link")(w.Pay(t.Context(), archived, invoice.NewAmount(10), "e"))
	})
}

// TestPayWithoutAnAllowedAddress changes the merchant's list so that the link's address is not on it.
func TestPayWithoutAnAllowedAddress(t *testing.T) {
	eachLinks(t, func(t *testing.T, w *linkWorld) {
		l := w.create(t, espresso())
		list := []invoice.AllowedAddress{{ChainKey: "base", Address: invoice.Address{3}}}
		expect.Success(t)(w.merchants.Update(t.Context(), operator, "acme", invoice.MerchantChange{Allowed: list}))
		w.pass(2 * time.Second)
		_, err := w.Pay(t.Context(), l, l.Amount, "a")
		if wrong := (*ledger.UnusableError)(nil); !errors.As(err, &wrong) || wrong.Reason.Field != "merchantAddress" || wrong.ID != l.ID {
			t.Errorf("it answers %v", err)
		}
		if _, err := w.Update(t.Context(), acme, l.ID, invoice.PaymentLinkChange{Archived: true}); err != nil {
			t.Errorf("it cannot be archived: %v", err)
		}
	})
}

func TestFind(t *testing.T) {
	eachLinks(t, func(t *testing.T, w *linkWorld) {
		w.create(t, espresso())
		for _, c := range []struct{ merchant, slug string }{{"acme", "tea"}, {"globex", "espresso"}, {"", ""}, {"a\x00", "espresso"}, {"acme", "\xff"}, {"acme", "Espresso"}} {
			expect.Error(t, db.ErrNotFound, "%q", c)(w.Find(t.Context(), c.merchant, c.slug))
		}
	})
}

func TestList(t *testing.T) {
	eachLinks(t, func(t *testing.T, w *linkWorld) {
		var ids []string
		for _, slug := range []string{"a", "b", "c"} {
			r := espresso()
			r.Slug = slug
			ids = append(ids, w.create(t, r).ID)
		}
		expect.Success(t)(w.Update(t.Context(), acme, ids[1], invoice.PaymentLinkChange{Archived: true}))
		yes, no := true, false
		for _, c := range []struct {
			f    ledger.PaymentLinkFilter
			want []string
		}{
			{ledger.PaymentLinkFilter{Limit: 9}, []string{ids[2], ids[1], ids[0]}},
			{ledger.PaymentLinkFilter{Limit: 1}, []string{ids[2]}},
			{ledger.PaymentLinkFilter{Before: ids[2], Limit: 9}, []string{ids[1], ids[0]}},
			{ledger.PaymentLinkFilter{MerchantID: "acme", Archived: &no, Limit: 9}, []string{ids[2], ids[0]}},
			{ledger.PaymentLinkFilter{Archived: &yes, Limit: 9}, []string{ids[1]}},
			{ledger.PaymentLinkFilter{Slug: "a", Limit: 9}, []string{ids[0]}},
			{ledger.PaymentLinkFilter{MerchantID: "globex", Limit: 9}, nil},
		} {
			found, err := w.List(t.Context(), c.f)
			var got []string
			for _, l := range found {
				got = append(got, l.ID)
			}
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%+v: %v (-want +got)\n%s", c.f, err, diff)
			}
		}
	})
}

// TestOfInvoice finds the link of an invoice, and no link of another merchant.
func TestOfInvoice(t *testing.T) {
	eachLinks(t, func(t *testing.T, w *linkWorld) {
		l := w.create(t, espresso())
		inv, err := w.Pay(t.Context(), l, l.Amount, "a")
		expect.OK(t, err)
		if got, err := w.OfInvoice(t.Context(), inv); err != nil || got != l {
			t.Errorf("the link is %+v, %v", got, err)
		}
		foreign, plain := inv, inv
		foreign.MerchantID, plain.Details.Metadata = "globex", nil
		for _, other := range []invoice.Invoice{foreign, plain} {
			if _, err := w.OfInvoice(t.Context(), other); !errors.Is(err, db.ErrNotFound) {
				t.Errorf("of an invoice of %s with %v: %v", other.MerchantID, other.Details.Metadata, err)
			}
		}
	})
}
