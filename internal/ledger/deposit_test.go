package ledger_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/webhooks"
)

func TestCreateDeposit(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		inv := w.create(deposited)
		want := invoice.Address(contracts.DepositAddress(common.Address(factory), common.Address(w.address), common.Hash(inv.CommitmentID)))
		if inv.Collection != invoice.Deposit || inv.DepositAddress != want || inv.DepositFactory != factory || !inv.TransferAmount.IsZero() {
			t.Errorf("the invoice is paid at %s of %s, or by %s; want %s", inv.DepositAddress, inv.DepositFactory, inv.TransferAmount, want)
		}
		if got := w.invoice(inv.ID); got.DepositAddress != want || got.DepositFactory != factory || got.Collection != invoice.Deposit {
			t.Errorf("it is stored with %s of %s as %q", got.DepositAddress, got.DepositFactory, got.Collection)
		}
		watched, err := w.Watched(t.Context(), w.chainKey, []invoice.Address{want, w.address, payer})
		w.must(err)
		if !watched[want] || !watched[w.address] || watched[payer] {
			t.Errorf("watched are %v", watched)
		}
		if direct := w.create(); direct.Collection != invoice.Direct || !direct.DepositAddress.IsZero() || direct.TransferAmount.IsZero() {
			t.Errorf("the direct invoice is %+v", direct)
		}

		// Another factory moves no invoice.
		w.Service = w.service(func(c *ledger.Config) { c.Chains[0].DepositFactory = invoice.Address{0x62} })
		w.mine(start+1, w.deposit(inv, 1_000_000))
		w.final()
		if got := w.invoice(inv.ID); got.Status != invoice.Paid || got.DepositAddress != want || got.DepositFactory != factory {
			t.Errorf("with another factory it is %s, paid at %s of %s", got.Status, got.DepositAddress, got.DepositFactory)
		}
	})
}

func TestCreateDepositIsRefused(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		for name, test := range map[string]struct {
			change func(*invoice.Draft)
			field  string
		}{
			"a chain without factory":         {func(d *invoice.Draft) { d.Collection, d.ChainKey = invoice.Deposit, "unregistered" }, "collection"},
			"a draft on such a chain":         {func(d *invoice.Draft) { d.Collection, d.ChainKey, d.Unissued = invoice.Deposit, "unregistered", true }, "collection"},
			"another collection":              {func(d *invoice.Draft) { d.Collection = "escrow" }, "collection"},
			"the factory as merchant address": {func(d *invoice.Draft) { d.Merchant = factory }, "merchantAddress"},
		} {
			d := w.draft()
			test.change(&d)
			_, err := w.Create(t.Context(), ledger.CreateRequest{Draft: d})
			if field := (*invoice.FieldError)(nil); !errors.As(err, &field) || field.Field != test.field {
				t.Errorf("%s: %v, want an error of %s", name, err, test.field)
			}
		}
	})
}

// TestDepositIsNotGivenOutUnverified uses nodes that do not confirm the factory.
func TestDepositIsNotGivenOutUnverified(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		down := errors.New("no node answers")
		w.Service = w.service(func(c *ledger.Config) {
			c.VerifyContracts = func(_ context.Context, chainKey string) error {
				expect.Equal(t, chainKey, w.chainKey, "the chain is verified:")
				return down
			}
		})
		w.create()                    // is direct
		draft := w.drafted(deposited) // has no address yet
		d := w.draft()
		d.Collection = invoice.Deposit
		request := ledger.CreateRequest{Once: ledger.Once{Key: "k"}, Draft: d}
		if _, err := w.Create(t.Context(), request); !errors.Is(err, ledger.ErrUnverified) || !errors.Is(err, down) {
			t.Errorf("created: %v", err)
		}
		expect.Error(t, ledger.ErrUnverified, "issued")(w.Finalize(t.Context(), w.own(), draft.ID))
		down = nil
		first, err := w.Create(t.Context(), request)
		w.must(err)
		w.finalize(draft)
		down = errors.New("no node answers any more")
		if again, err := w.Create(t.Context(), request); err != nil || again.ID != first.ID {
			t.Errorf("the repeated create is %s, %v; want %s", again.ID, err, first.ID)
		}
	})
}

func TestDepositByDefault(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.merchant = "depositing-" + w.merchant
		if inv := w.create(); inv.Collection != invoice.Deposit || inv.DepositAddress.IsZero() {
			t.Errorf("by the merchant's default it is %q", inv.Collection)
		}
		if inv := w.create(func(d *invoice.Draft) { d.Collection = invoice.Direct }); inv.Collection != invoice.Direct || !inv.DepositAddress.IsZero() {
			t.Errorf("asked for a direct one it is %q", inv.Collection)
		}
	})
}

// TestDepositOfADraft finalizes drafts: the address derives from the final terms.
func TestDepositOfADraft(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		unissued := func(d *invoice.Draft) { d.Unissued = true }
		draft, direct := w.create(deposited, unissued), w.create(unissued)
		if !draft.DepositAddress.IsZero() || draft.Collection != invoice.Deposit {
			t.Errorf("the draft is %q and paid at %s", draft.Collection, draft.DepositAddress)
		}
		more := invoice.NewAmount(2_000_000)
		w.must(w.UpdateInvoice(t.Context(), w.own(), draft.ID, ledger.InvoiceChange{Amount: &more}))
		w.must(w.UpdateInvoice(t.Context(), w.own(), direct.ID, ledger.InvoiceChange{Collection: new(invoice.Deposit)}))
		for _, id := range []string{draft.ID, direct.ID} {
			issued, err := w.Finalize(t.Context(), w.own(), id)
			w.must(err)
			want := invoice.Address(contracts.DepositAddress(common.Address(factory), common.Address(w.address), common.Hash(issued.CommitmentID)))
			if issued.DepositAddress != want || w.invoice(id).DepositAddress != want {
				t.Errorf("it is paid at %s, want %s", issued.DepositAddress, want)
			}
			w.mine(w.head().Time.Unix()+1, w.deposit(issued, number(issued.Amount)))
			w.final()
			if got := w.invoice(id); got.Status != invoice.Paid {
				t.Errorf("it is %s", got.Status)
			}
		}
	})
}

// TestDepositInAnotherCurrency sends a known token to the deposit address of an invoice in another
// currency. The merchant sees it with the invoice, it does not count, and the sweep recovers it.
func TestDepositInAnotherCurrency(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.merchant = "curious-" + w.merchant
		inv := w.create(deposited)
		euros := w.create(func(d *invoice.Draft) { d.Currency = "EURC" })
		wrong := inEUR(w.deposit(inv, number(euros.TransferAmount)))
		w.mine(start+1, wrong)
		w.final()
		p := w.payment(wrong)
		if p.Attributed() || p.DepositOf != inv.ID || p.SettlesTo != w.address || !p.InOtherCurrency() || p.Status != invoice.Confirmed {
			t.Errorf("the payment is %+v", p)
		}
		if w.invoice(inv.ID).Sums.Payments+w.invoice(euros.ID).Sums.Payments > 0 {
			t.Error("it counts for an invoice")
		}
		for merchant, want := range map[string]bool{w.merchant: true, "other": false} {
			if got, err := ledger.NewReader(w.db.store).HasUnattributed(t.Context(), merchant, p.SeenID); err != nil || got != want {
				t.Errorf("merchant %s sees it: %t, %v", merchant, got, err)
			}
		}
		events, err := webhooks.NewReader(w.db.store).Events(t.Context(), webhooks.EventFilter{MerchantID: w.merchant, Type: invoice.EventUnattributed, Limit: 10})
		w.must(err)
		if len(events) != 1 {
			t.Fatalf("%d events were emitted", len(events))
		}
		var body struct{ Data apitypes.UnattributedData }
		w.must(json.Unmarshal(events[0].Body, &body))
		if body.Data.Payment.Exception != apitypes.PaymentInOtherCurrency || body.Data.Payment.DepositInvoiceID != inv.ID {
			t.Errorf("the event is %s", events[0].Body)
		}
		for _, to := range []invoice.Invoice{inv, euros} {
			if _, err := w.attribute(p, to); err == nil {
				t.Errorf("it was attributed by hand to an invoice in %s", to.Currency)
			}
		}
		if held := w.unswept(eurc); held[inv.ID] != number(wrong.Amount) {
			t.Errorf("deposit addresses hold %v", held)
		}
		w.mine(start+2, inEUR(w.sweep(inv, number(wrong.Amount))))
		w.final()
		if held := w.unswept(eurc); len(held) > 0 {
			t.Errorf("after the sweep, deposit addresses hold %v", held)
		}
		if got := w.invoice(inv.ID); !got.SweptTx.IsZero() {
			t.Error("a sweep of another currency is shown")
		}

		// The merchant sends it back.
		back := inEUR(w.back(wrong.Amount))
		w.mine(start+3, back)
		w.final()
		refunds, err := ledger.RefundsOfPayments(t.Context(), w.db.store, []string{p.ID})
		w.must(err)
		if len(refunds) != 1 || refunds[0].Status != invoice.Confirmed {
			t.Errorf("its refunds are %+v", refunds)
		}
	})
}

// TestDepositAddressIsNoSettlementAddress checks that another merchant cannot name a deposit address.
func TestDepositAddressIsNoSettlementAddress(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		inv := w.create(deposited)
		for _, byMerchant := range []bool{true, false} {
			d := w.draft()
			d.MerchantID, d.Merchant = "thief", inv.DepositAddress
			_, err := w.Create(t.Context(), ledger.CreateRequest{Draft: d, ByMerchant: byMerchant})
			if field := (*invoice.FieldError)(nil); !errors.As(err, &field) || field.Field != "merchantAddress" {
				t.Errorf("by the merchant: %t: %v", byMerchant, err)
			}
		}
		if ok := w.create(); ok.TransferAmount.IsZero() {
			t.Error("an invoice at the own address was not created")
		}
	})
}

// TestDepositAddressOfADraftIsTaken names the address that a draft will have as settlement
// address, before the draft is issued.
func TestDepositAddressOfADraftIsTaken(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		draft := w.drafted(deposited)
		w.create(func(d *invoice.Draft) {
			d.MerchantID = "thief"
			d.Merchant = invoice.Address(contracts.DepositAddress(common.Address(factory), common.Address(draft.Merchant), common.Hash(draft.CommitmentID)))
		})
		_, err := w.Finalize(t.Context(), w.own(), draft.ID)
		if field := (*invoice.FieldError)(nil); !errors.As(err, &field) || field.Field != "collection" {
			t.Errorf("it was issued: %v", err)
		}
		more := invoice.NewAmount(2_000_000)
		w.must(w.UpdateInvoice(t.Context(), w.own(), draft.ID, ledger.InvoiceChange{Amount: &more}))
		if issued := w.finalize(draft); issued.DepositAddress.IsZero() {
			t.Error("with other terms it has no deposit address")
		}
	})
}
