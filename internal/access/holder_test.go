package access_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// started is a start of the service with the merchant "shop" in its configuration, or without.
type started struct {
	without bool
	allowed []invoice.AllowedAddress
	webhook string
}

// start compares the configuration with the database, as a start does.
func (w *merchantWorld) start(t *testing.T, is started) ([]access.Left, error) {
	t.Helper()
	configured := map[string]access.MerchantSettings{}
	if !is.without {
		configured["shop"] = access.MerchantSettings{Merchant: invoice.Merchant{Allowed: is.allowed}, WebhookURL: is.webhook}
	}
	w.MerchantManager = access.NewMerchants(access.MerchantConfig{Store: w.db, Configured: configured, Chains: []string{"base"}, Now: func() time.Time { return w.now }})
	checked, wrong := w.CompareConfigured(t.Context())
	left, err := w.RecordConfigured(t.Context())
	if len(checked) != len(left) || (wrong == nil) != (err == nil) {
		t.Errorf("the comparison says %v, %v, and the start %v, %v", checked, wrong, left, err)
	}
	if err == nil {
		err = w.HoldConfigured(t.Context())
	}
	return left, err
}

// TestIDOfAnotherCompany starts the service with several configurations, one after the other. The last
// one is refused if its merchant may be a different company from the one that had invoices.
func TestIDOfAnotherCompany(t *testing.T) {
	t.Parallel()
	list := func(all ...invoice.AllowedAddress) []invoice.AllowedAddress { return all }
	none := started{without: true}
	const hookA, hookB, pathA = "https://a.example/1", "https://b.example/1", "https://a.example/2"
	const differs = "has none of its former allowedAddresses"
	for name, test := range map[string]struct {
		starts  []started
		refused string
	}{
		// Another company in the place of the former one.
		"all addresses":                    {[]started{{allowed: list(home)}, {allowed: list(bank)}}, differs},
		"all addresses and the host":       {[]started{{allowed: list(home), webhook: hookA}, {allowed: list(bank), webhook: hookB}}, differs},
		"the host":                         {[]started{{webhook: hookA}, {webhook: hookB}}, differs},
		"a first list and the host":        {[]started{{webhook: hookA}, {allowed: list(bank), webhook: hookB}}, differs},
		"no list any more, and a URL":      {[]started{{allowed: list(home)}, {webhook: hookB}}, differs},
		"nothing of before":                {[]started{{allowed: list(home), webhook: hookA}, {}}, differs},
		"another address after an absence": {[]started{{allowed: list(home)}, none, {allowed: list(bank)}}, "was not in it on"},
		"another host after an absence":    {[]started{{webhook: hookA}, none, {webhook: hookB}}, "was not in it on"},
		"a first list after an absence":    {[]started{{}, none, {allowed: list(bank)}}, "was not in it on"},
		"a common host after an absence":   {[]started{{webhook: hookA}, none, {webhook: pathA}}, "was not in it on"},
		"a first URL after an absence":     {[]started{{}, none, {webhook: hookB}}, "was not in it on"},
		// The same company.
		"another path":                       {[]started{{webhook: hookA}, {webhook: pathA}}, ""},
		"all addresses, and the host stays":  {[]started{{allowed: list(home), webhook: hookA}, {allowed: list(bank), webhook: pathA}}, ""},
		"the host, and an address stays":     {[]started{{allowed: list(home, bank), webhook: hookA}, {allowed: list(bank), webhook: hookB}}, ""},
		"one address more, then one less":    {[]started{{allowed: list(home)}, {allowed: list(home, bank)}, {allowed: list(bank)}}, ""},
		"a first list":                       {[]started{{webhook: hookA}, {allowed: list(bank), webhook: hookA}}, ""},
		"a first list without a URL":         {[]started{{}, {allowed: list(bank)}}, ""},
		"a first list and a first URL":       {[]started{{}, {allowed: list(bank), webhook: hookB}}, ""},
		"the URL is set by the API now":      {[]started{{allowed: list(home), webhook: hookA}, {allowed: list(home)}}, ""},
		"the same after an absence":          {[]started{{allowed: list(home)}, none, none, {allowed: list(home), webhook: hookB}}, ""},
		"one address stays over an absence":  {[]started{{allowed: list(home)}, none, {allowed: list(home, bank)}}, ""},
		"the URL stays over an absence":      {[]started{{webhook: hookA}, none, {webhook: hookA}}, ""},
		"an old instance restarts once":      {[]started{{}, none, {}}, ""},
		"an address from before the list":    {[]started{{allowed: list(bank)}, {allowed: list(bank, home)}, {allowed: list(home)}, none, {allowed: list(bank)}}, ""},
		"a first start of an older database": {[]started{{allowed: list(bank)}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, w *merchantWorld) {
				dbtest.Schedule(t, w.db, "shop", 0, 3, 1000)
				last := len(test.starts) - 1
				for _, is := range test.starts[:last] {
					expect.Success(t)(w.start(t, is))
					w.pass(time.Hour)
				}
				_, err := w.start(t, test.starts[last])
				if test.refused == "" {
					expect.NoError(t, err)
					return
				}
				if err == nil || !strings.Contains(err.Error(), test.refused) || !strings.Contains(err.Error(), "quittance merchant resume shop") {
					t.Fatalf("the start: %v; want %q and the command", err, test.refused)
				}
				expect.OK(t, w.Resume(t.Context(), operator, "shop"))
				if _, err := w.start(t, test.starts[last]); err != nil {
					t.Errorf("after the command: %v", err)
				}
			})
		})
	}
}

// TestUnusedIDComesBack removes a merchant that has no objects that another company could get.
func TestUnusedIDComesBack(t *testing.T) {
	each(t, func(t *testing.T, w *merchantWorld) {
		for _, is := range []started{{allowed: []invoice.AllowedAddress{home}}, {without: true}, {allowed: []invoice.AllowedAddress{bank}}} {
			if _, err := w.start(t, is); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestLeft lists the objects of a merchant that left the configuration, and creates it in the database.
func TestLeft(t *testing.T) {
	each(t, func(t *testing.T, w *merchantWorld) {
		dbtest.Schedule(t, w.db, "shop", 0, 3, 1000)
		if left, err := w.start(t, started{allowed: []invoice.AllowedAddress{home}}); err != nil || len(left) != 0 {
			t.Errorf("with the merchant: %v, %v", left, err)
		}
		w.pass(time.Hour)
		gone := w.now
		for range 2 {
			left, err := w.start(t, started{without: true})
			want := access.MerchantUses{Open: 1, Waiting: 3}
			if err != nil || len(left) != 1 || left[0].ID != "shop" || !left[0].At.Equal(gone) || left[0].Uses != want {
				t.Errorf("without it: %+v, %v; want %+v since %s", left, err, want, gone)
			}
			w.pass(time.Hour)
		}
		if w.Known("shop") {
			t.Error("a merchant that left is known")
		}
		name := "Shop"
		for what, c := range map[string]invoice.MerchantChange{
			"no address": {Name: &name}, "another address": {Name: &name, DefaultAddresses: map[string]invoice.Address{"base": bank.Address}},
		} {
			if _, err := w.Create(t.Context(), operator, "shop", c); !errors.Is(err, access.ErrLeft) {
				t.Errorf("a create with %s: %v, want ErrLeft", what, err)
			}
		}
		if _, err := w.Create(t.Context(), operator, "shop", invoice.MerchantChange{Name: &name, DefaultAddresses: map[string]invoice.Address{"base": home.Address}}); err != nil {
			t.Errorf("a create with its address: %v", err)
		}
		if left, err := w.start(t, started{without: true}); err != nil || len(left) != 0 || !w.Known("shop") {
			t.Errorf("a merchant in the database left: %v, %v", left, err)
		}
	})
}

// TestRetire retires a merchant of the database and one that left the configuration, and resumes one.
func TestRetire(t *testing.T) {
	each(t, func(t *testing.T, w *merchantWorld) {
		dbtest.Schedule(t, w.db, "shop", 0, 1, 1000)
		if err := w.Retire(t.Context(), operator, "shop"); !errors.Is(err, access.ErrConfigured) {
			t.Errorf("a configured one: %v", err)
		}
		if err := w.Retire(t.Context(), merchantAcme, "acme"); !errors.Is(err, access.ErrForbidden) {
			t.Errorf("by a merchant: %v", err)
		}
		if err := w.Resume(t.Context(), operator, "acme"); !errors.Is(err, access.ErrNotFound) {
			t.Errorf("one that needs no decision: %v", err)
		}
		for _, is := range []started{{allowed: []invoice.AllowedAddress{home}}, {without: true}} {
			expect.Success(t)(w.start(t, is))
		}
		if err := w.Retire(t.Context(), operator, "nobody"); !errors.Is(err, access.ErrNotFound) {
			t.Errorf("one that does not exist: %v", err)
		}
		for _, id := range []string{"acme", "shop"} {
			expect.OK(t, w.Retire(t.Context(), operator, id))
			if err := w.Retire(t.Context(), operator, id); !errors.Is(err, access.ErrRetired) {
				t.Errorf("%s a second time: %v", id, err)
			}
			if w.Known(id) {
				t.Errorf("%s is known", id)
			}
		}
		name := "Other"
		if _, err := w.Create(t.Context(), operator, "shop", invoice.MerchantChange{Name: &name}); !errors.Is(err, access.ErrRetired) {
			t.Errorf("a create with a retired id: %v", err)
		}
		if _, err := w.start(t, started{allowed: []invoice.AllowedAddress{home}}); err == nil || !strings.Contains(err.Error(), "the merchant id shop was retired") {
			t.Errorf("a start with a retired id: %v", err)
		}
		if err := w.Resume(t.Context(), operator, "acme"); err != nil || !w.Known("acme") {
			t.Errorf("resumed: %v", err)
		}
		if got := w.actions(t); len(got) < 2 || got[0] != access.ActionMerchantResume || got[1] != access.ActionMerchantRetire {
			t.Errorf("the log has %v", got)
		}
	})
}

// TestBreakerOfTheURL opens a merchant's breaker. It closes if the webhookUrl changes, and with no other change.
func TestBreakerOfTheURL(t *testing.T) {
	for name, fresh := range dbtest.MigratedDatabases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := fresh(t)
			w := &merchantWorld{db: dbtest.Open(t, url), now: time.Unix(1_764_000_000, 0)}
			dbtest.Schedule(t, w.db, "shop", 0, 1, 1000)
			broken := started{webhook: "https://a.example/wrong"}
			expect.Success(t)(w.start(t, broken))
			expect.Success(t)(dbtest.SQL(t, url).ExecContext(t.Context(), `INSERT INTO breakers (merchant_id, state, steady, allowed, failures, timeouts, pauses, since_ms, until_ms)
				VALUES ('shop', 'open', 0, 1, 9, 0, 1, 1, 2)`))
			for _, step := range []struct {
				is   started
				used bool
			}{{broken, true}, {started{allowed: []invoice.AllowedAddress{home}, webhook: broken.webhook}, true}, {started{webhook: "https://a.example/right"}, false}} {
				expect.Success(t)(w.start(t, step.is))
				if b, err := webhooks.NewReader(w.db).Breakers(t.Context(), []string{"shop"}); err != nil || b["shop"].Used != step.used {
					t.Errorf("with %+v the breaker is %+v, %v", step.is, b["shop"], err)
				}
			}
		})
	}
}

// claim claims an address for a merchant, and reports whether the merchant then holds it.
func claim(t *testing.T, s *db.DB, h access.Holding) (holds bool) {
	t.Helper()
	rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
		refused, err := access.ClaimAddresses(ctx, tx, []access.Holding{h}, rowtest.At(1))
		holds = len(refused) == 0
		return err
	})
	return holds
}

// grant grants addresses, and returns the new grants and the holdings that end.
func grant(t *testing.T, s *db.DB, all ...access.Holding) (granted, lost []access.Holding) {
	t.Helper()
	rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) (err error) {
		granted, lost, err = access.GrantAddresses(ctx, tx, all, rowtest.At(1))
		return err
	})
	return granted, lost
}

func TestAddressHolders(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		home, bank := invoice.Address{1}, invoice.Address{2}
		m, n := access.Holding{Address: home, MerchantID: "m"}, access.Holding{Address: home, MerchantID: "n"}
		for range 2 {
			if !claim(t, s, m) || claim(t, s, n) {
				t.Fatal("the first to claim the address does not hold it alone")
			}
		}
		if granted, lost := grant(t, s, n, n, access.Holding{Address: bank, MerchantID: "n"}); len(granted) != 2 || !cmp.Equal(lost, []access.Holding{m}) {
			t.Errorf("granted %v, lost %v", granted, lost)
		}
		if claim(t, s, m) || !claim(t, s, n) {
			t.Error("the claim did not end with the grant")
		}
		if granted, lost := grant(t, s, m, n); !cmp.Equal(granted, []access.Holding{m}) || len(lost) > 0 {
			t.Errorf("shared: granted %v, lost %v", granted, lost)
		}
		if !claim(t, s, m) || !claim(t, s, n) {
			t.Error("the operator cannot share an address")
		}
	})
}

// TestGrantOfAnOwnClaim checks that a grant to the merchant that claimed the address ends no holding.
func TestGrantOfAnOwnClaim(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		m := access.Holding{Address: invoice.Address{1}, MerchantID: "m"}
		if granted, lost := grant(t, s); !claim(t, s, m) || len(granted)+len(lost) > 0 {
			t.Error("nothing was granted")
		}
		if granted, lost := grant(t, s, m); len(granted) != 1 || len(lost) > 0 || !claim(t, s, m) {
			t.Errorf("granted %v, lost %v", granted, lost)
		}
	})
}

// release releases an address, and reports whether it was held.
func release(t *testing.T, s *db.DB, h access.Holding) bool {
	t.Helper()
	err := s.Update(t.Context(), func(tx *db.Tx) error { return access.ReleaseAddress(t.Context(), tx, h) })
	if err != nil && !errors.Is(err, db.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

// TestReleasedAddress releases an address of a merchant that claimed it, and of one of two merchants
// to which it was granted.
func TestReleasedAddress(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		m, n := access.Holding{Address: invoice.Address{1}, MerchantID: "m"}, access.Holding{Address: invoice.Address{1}, MerchantID: "n"}
		if release(t, s, m) {
			t.Error("an address that nobody ever held was released")
		}
		if !claim(t, s, m) || release(t, s, n) || !release(t, s, m) || release(t, s, m) {
			t.Error("a claim did not end, or not once")
		}
		if claim(t, s, m) || claim(t, s, n) {
			t.Error("the address was claimed after it was taken back")
		}
		if granted, _ := grant(t, s, m, n); len(granted) != 2 || !release(t, s, m) {
			t.Errorf("granted %v", granted)
		}
		if claim(t, s, m) || !claim(t, s, n) {
			t.Error("the other merchant lost the address, or the first kept it")
		}
	})
}

// TestClaimsRace lets merchants claim one address at once.
func TestClaimsRace(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		for round := range byte(8) {
			ids := []string{"a", "b", "c", "d"}
			holds := make([]bool, len(ids))
			var wg sync.WaitGroup
			for i, id := range ids {
				wg.Go(func() {
					err := s.Update(t.Context(), func(tx *db.Tx) error {
						refused, err := access.ClaimAddresses(t.Context(), tx, []access.Holding{{Address: invoice.Address{9, round}, MerchantID: id}}, rowtest.At(1))
						holds[i] = err == nil && len(refused) == 0
						return err
					})
					expect.NoError(t, err)
				})
			}
			wg.Wait()
			holders := 0
			for _, h := range holds {
				if h {
					holders++
				}
			}
			if holders != 1 {
				t.Errorf("round %d: %d merchants hold the address", round, holders)
			}
		}
	})
}

// TestNamedAddressIsLocked checks that an address cannot be granted to another merchant between the check that a
// merchant holds it and the commit of the list or payment link that names it.
func TestNamedAddressIsLocked(t *testing.T) {
	t.Parallel()
	url := dbtest.MigratedPostgres(t)
	s, other := dbtest.Open(t, url), dbtest.SQL(t, url)
	m := access.NewMerchants(access.MerchantConfig{Store: s, Now: func() time.Time { return rowtest.At(1) }})
	h := access.Holding{Address: invoice.Address{1}, MerchantID: "m"}
	claim(t, s, h)
	rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
		by := access.Principal{KeyID: "key_1", MerchantID: h.MerchantID, Scopes: access.Admin}
		if held, err := m.HoldAddress(ctx, tx, by, h.MerchantID, h.Address); err != nil || !held {
			t.Errorf("held %t, %v", held, err)
		}
		if _, err := other.ExecContext(ctx, "SELECT 1 FROM held_addresses WHERE address = $1 FOR UPDATE NOWAIT", h.Address.String()); err == nil {
			t.Error("another transaction could have granted the address")
		}
		return nil
	})
	expect.Success(t)(other.ExecContext(t.Context(), "SELECT 1 FROM held_addresses WHERE address = $1 FOR UPDATE NOWAIT", h.Address.String()))
}

// TestLostAddressIsNotSeen checks that a merchant that loses an address no longer sees its
// unattributed payments, even if they are stored again.
func TestLostAddressIsNotSeen(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.StartChain(t, s, "base")
		inv, p := rowtest.Sample("inv_1", "m"), rowtest.SamplePayment(1)
		m := access.Holding{Address: p.To, MerchantID: "m"}
		p.InvoiceID, p.MerchantID, p.Method = "", "", ""
		claim(t, s, m)
		inv.Merchant = p.To
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			settled := []access.SettlementAddress{{ChainKey: "base", Address: p.To, MerchantID: "m"}, {ChainKey: "base", Address: p.To, MerchantID: "n"}}
			if err := access.InsertSettlementAddresses(ctx, tx, settled, rowtest.At(1)); err != nil {
				return err
			}
			return ledger.SavePayments(ctx, tx, []ledger.PaymentRow{p})
		})
		sees := func(id string) bool {
			has, err := ledger.NewReader(s).HasUnattributed(t.Context(), id, p.SeenID)
			rowtest.Must(t, err)
			return has
		}
		if !sees("m") || sees("n") {
			t.Fatalf("m sees the payment: %t, n: %t", sees("m"), sees("n"))
		}
		release(t, s, m)
		if sees("m") {
			t.Error("the merchant sees a payment to an address that was released")
		}
		grant(t, s, m)
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			return ledger.SavePayments(ctx, tx, []ledger.PaymentRow{p})
		})
		if !sees("m") {
			t.Fatal("the payment was stored again, and the merchant does not see it")
		}
		release(t, s, m)
		grant(t, s, access.Holding{Address: p.To, MerchantID: "n"})
		if sees("m") {
			t.Error("the merchant sees a payment to an address that it lost")
		}
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			return ledger.SavePayments(ctx, tx, []ledger.PaymentRow{p})
		})
		if sees("m") || !sees("n") {
			t.Errorf("stored again: m sees the payment: %t, n: %t", sees("m"), sees("n"))
		}
	})
}
