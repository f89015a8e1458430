package ledger_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/webhook"
)

// lostInvoice returns an invoice that a service with the world's chain created, and that the database does not have.
func (w *world) lostInvoice(change func(*invoice.Invoice)) invoice.Invoice {
	w.txs++
	inv := invoice.Invoice{
		Terms: invoice.Terms{Merchant: w.address, Token: usdc, Amount: invoice.NewAmount(1_000_000), ExpiresAt: invoice.Unix(w.seconds.Load() + 3600)},
		ID:    fmt.Sprintf("inv_%026d", w.txs+int(w.address[19])*1000+int(w.address[18])*1_000_000), MerchantID: w.merchant, Currency: "USDC", ChainKey: w.chainKey, Status: invoice.Open,
		CreatedAt: invoice.Unix(w.seconds.Load()), Collection: invoice.Direct, Registry: registry,
	}
	if change != nil {
		change(&inv)
	}
	c := chain.Chain{ID: 1337, Registry: registry, DepositFactory: factory}
	inv.CommitmentID = chain.CommitmentID(c.ID, inv.Registry, inv.Terms, inv.ID)
	if inv.IsDeposit() {
		inv.DepositFactory, inv.DepositAddress = factory, c.DepositAddress(inv.Merchant, inv.CommitmentID)
	} else {
		inv.TransferAmount = invoice.NewAmount(number(inv.Amount) + 7)
	}
	return inv
}

// lose records that a recovery found invoices on the chain that the database does not have.
func (w *world) lose(all ...invoice.Invoice) {
	w.t.Helper()
	w.must(w.db.store.Update(w.t.Context(), func(tx *db.Tx) error {
		if _, err := ledger.RecoverFrom(w.t.Context(), tx, false, at(w.seconds.Load())); err != nil {
			return err
		}
		var lost []ledger.LostInvoice
		for _, inv := range all {
			lost = append(lost, ledger.LostInvoice{ChainKey: inv.ChainKey, CommitmentID: inv.CommitmentID, Registry: inv.Registry, Block: w.head().Number})
		}
		return ledger.InsertLostInvoices(w.t.Context(), tx, lost)
	}))
}

// holds makes the world's merchant hold addresses.
func (w *world) holds(addresses ...invoice.Address) {
	w.t.Helper()
	w.must(w.db.store.Update(w.t.Context(), func(tx *db.Tx) error {
		var claims []access.Holding
		for _, a := range addresses {
			claims = append(claims, access.Holding{Address: a, MerchantID: w.merchant})
		}
		refused, err := access.ClaimAddresses(w.t.Context(), tx, claims, invoice.Unix(start))
		if len(refused) > 0 {
			err = errors.Join(err, fmt.Errorf("refused %v", refused))
		}
		return err
	}))
}

// copyOf returns a merchant's copy of an invoice: kind 0 is the answer to its create, 1 an event, 2 a bare invoice, and 3
// a delivery that is signed with a secret.
func copyOf(t testing.TB, inv invoice.Invoice, kind int, secret string) ledger.InvoiceCopy {
	t.Helper()
	var value any
	switch kind {
	case 0:
		value = apiconv.CreateInvoiceResponse(inv, "")
	case 1, 3:
		body, err := apiconv.EventBody("evt_1", invoice.EventCreated, inv.CreatedAt, apiconv.InvoiceData(inv))
		expect.OK(t, err)
		value = json.RawMessage(body)
		if kind == 3 {
			value = map[string]any{"headers": map[string]string{"x-service-signature": webhook.Sign(secret, time.Unix(1, 0), body)}, "body": string(body)}
		}
	default:
		value = apiconv.Invoice(inv)
	}
	line := expect.Must(json.Marshal(value))
	c, err := ledger.ParseInvoiceCopy(line)
	if err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	return c
}

// TestImportInvoice creates two lost invoices again. Their payments arrived after the backup: one at a
// deposit address that was watched, so that it was recorded without an invoice, and one at a
// settlement address that was not. Until the blocks are read again, no person can dismiss them.
func TestImportInvoice(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		deposit := w.lostInvoice(func(inv *invoice.Invoice) { inv.Collection = invoice.Deposit })
		direct := w.lostInvoice(func(inv *invoice.Invoice) {
			inv.Merchant = invoice.Address{0: 0xab, 19: w.address[19]}
			inv.Details = invoice.Details{Reference: "order 1", Metadata: map[string]string{"a": "b"}}
			inv.LineItems = []invoice.LineItem{{Label: "Tea", Amount: inv.Amount}}
		})
		w.lose(deposit, direct)
		w.holds(deposit.Merchant, direct.Merchant)
		begun := w.head().Number + 1
		paid, unseen := w.deposit(deposit, 1_000_000), w.pay(direct.TransferAmount)
		unseen.To = direct.Merchant
		w.must(w.db.store.Update(ctx, func(tx *db.Tx) error {
			return ledger.InsertLostAddresses(ctx, tx, w.chainKey, map[invoice.Address]invoice.Hash{deposit.DepositAddress: deposit.CommitmentID})
		}))
		sent := w.pay(invoice.NewAmount(5))
		sent.From, sent.To = direct.Merchant, invoice.Address{0x99}
		w.mine(start+1, paid, unseen, sent)
		w.final()
		if w.payment(paid).Attributed() || w.isPaymentOrRefund(unseen) {
			t.Fatal("the payments are recorded otherwise than after a recovery")
		}
		for range 2 { // it can be repeated
			for i, inv := range []invoice.Invoice{deposit, direct} {
				done, err := w.ImportInvoice(ctx, copyOf(t, inv, i, ""), nil)
				if err != nil || done.Invoice.ID != inv.ID || done.Invoice.CommitmentID != inv.CommitmentID || done.Invoice.DepositAddress != inv.DepositAddress {
					t.Fatalf("imported %+v, %v", done, err)
				}
			}
		}
		items, _, err := w.Inbox(ctx, ledger.InboxFilter{Kind: invoice.ItemUnattributed, Limit: 10})
		w.must(err)
		for _, item := range items {
			req := w.dismissal(item)
			req.MerchantID = "" // the operator
			if _, err := w.Decide(ctx, req); !errors.Is(err, ledger.ErrUndecided) {
				t.Errorf("%s dismissed while it waits for the rules: %v, want ErrUndecided", item.Payment.Amount, err)
			}
		}
		expect.Len(t, items, 1, "payments in the inbox:")
		w.fill(begun, w.head(), w.blocks[len(w.blocks)-1:]...)
		w.mine(start + 2)
		w.final()
		for range 2 { // also once it was checked, and read again
			found, err := ledger.UnrecognizedTransfers(ctx, w.db.store, w.chainKey, ledger.UnrecognizedTransfer{}, 10)
			w.must(err)
			if sent.TxHash.IsZero() {
				expect.Len(t, found, 0, "after the check, unrecognized transfers:")
				break
			}
			if len(found) != 1 || found[0].TxHash != sent.TxHash || !slices.Equal(found[0].Payments, []string{w.payment(unseen).ID}) {
				t.Fatalf("transfers out of an imported invoice's settlement address in the lost past: %+v", found)
			}
			w.must(w.db.store.Update(ctx, func(tx *db.Tx) error { return ledger.CheckTransfer(ctx, tx, found[0].ID) }))
			expect.Success(t)(w.Rescan(ctx, w.chainKey, begun))
			w.fill(begun, w.head(), w.blocks[begun-100:]...)
			sent.TxHash = invoice.Hash{}
		}
		for transfer, inv := range map[*invoice.Transfer]invoice.Invoice{&paid: deposit, &unseen: direct} {
			if got := w.invoice(inv.ID); got.Status != invoice.Paid || w.payment(*transfer).InvoiceID != inv.ID {
				t.Errorf("the invoice is %s, its payment %+v", got.Status, w.payment(*transfer))
			}
			if got := w.eventTypes(inv); strings.Join(got, " ") != "invoice.created payment.received invoice.paid" {
				t.Errorf("its events are %v", got)
			}
		}
		if held := w.unswept(usdc); held[deposit.ID] != 1_000_000 {
			t.Errorf("deposit addresses hold %v, want the imported invoice's payment", held)
		}
		if got := w.invoice(direct.ID); got.Details.Reference != "order 1" || !maps.Equal(got.Details.Metadata, direct.Details.Metadata) || len(got.LineItems) != 1 {
			t.Errorf("its details are %+v", got)
		}
	})
}

// TestImportRefuses refuses copies without proof, copies that were changed, and copies that differ
// from an earlier import.
func TestImportRefuses(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		const secret = "whsec_of_the_shop"
		known := w.lostInvoice(nil)
		unknown := w.lostInvoice(func(inv *invoice.Invoice) { inv.Amount = invoice.NewAmount(2_000_000) })
		expect.Error(t, ledger.ErrNoRecovery, "before a recovery")(w.ImportInvoice(t.Context(), copyOf(t, known, 0, ""), nil))
		w.lose(known)
		changed := copyOf(t, known, 0, "")
		changed.Invoice.Amount = "999999"
		stranger := copyOf(t, known, 2, "")
		stranger.Invoice.MerchantID = "stranger"
		draft := copyOf(t, known, 2, "")
		draft.Invoice.Status = apitypes.StatusDraft
		signed := copyOf(t, unknown, 3, secret)
		forged := signed
		forged.Invoice.Amount = "5" // the body has another
		for name, c := range map[string]struct {
			copied  ledger.InvoiceCopy
			secrets []string
			want    string
		}{
			"changed": {changed, nil, "do not give its onChainInvoiceId"}, "another merchant": {stranger, nil, "is not one of this service"},
			"a draft": {draft, nil, "it is a draft"}, "unproved": {copyOf(t, unknown, 0, ""), []string{secret}, ledger.ErrCopyUnproved.Error()},
			"another secret": {signed, []string{"whsec_another", ""}, ledger.ErrCopyUnproved.Error()},
		} {
			if _, err := w.ImportInvoice(t.Context(), c.copied, c.secrets); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for range 2 {
			if done, err := w.ImportInvoice(t.Context(), signed, []string{"whsec_new", secret}); err != nil || done.Invoice.CommitmentID != unknown.CommitmentID {
				t.Errorf("signed long ago: %+v, %v", done, err)
			}
		}
		expect.Success(t)(w.ImportInvoice(t.Context(), copyOf(t, known, 1, ""), nil))
		differing := copyOf(t, known, 1, "")
		differing.Invoice.Description = "another"
		expect.Error(t, ledger.ErrCopyDiffers, "two copies differ")(w.ImportInvoice(t.Context(), differing, nil))
	})
}

// TestImportOfAnotherMerchant gives copies of a public invoice with another merchant's id, at an address that no
// merchant holds. The commitment does not show whose invoice it is. The configuration, a holding or a signature does.
func TestImportOfAnotherMerchant(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		const secret = "whsec_of_the_shop"
		lost := w.lostInvoice(nil)
		w.lose(lost)
		stolen := copyOf(t, lost, 0, "")
		stolen.Invoice.MerchantID = "thief"
		for name, c := range map[string]ledger.InvoiceCopy{"stolen": stolen, "own": copyOf(t, lost, 0, ""), "another secret's": copyOf(t, lost, 3, "whsec_x")} {
			if _, err := w.ImportInvoice(t.Context(), c, []string{secret}); !errors.Is(err, ledger.ErrNotOfMerchant) {
				t.Errorf("a copy that is %s: %v", name, err)
			}
		}
		for _, m := range []invoice.Merchant{
			{DefaultAddresses: map[string]invoice.Address{w.chainKey: lost.Merchant}}, // a merchant's own setting is no proof
			{Configured: true, DefaultAddresses: map[string]invoice.Address{"unregistered": lost.Merchant}},
			{Configured: true, Allowed: []invoice.AllowedAddress{{ChainKey: "unregistered", Address: lost.Merchant}}},
		} {
			w.Service = w.service(func(c *ledger.Config) { c.Merchants = named{m} })
			expect.Error(t, ledger.ErrNotOfMerchant, "with %+v", m)(w.ImportInvoice(t.Context(), copyOf(t, lost, 0, ""), nil))
		}
		names := []invoice.Merchant{
			{Configured: true, DefaultAddresses: map[string]invoice.Address{w.chainKey: {}}},
			{Configured: true, Allowed: []invoice.AllowedAddress{{ChainKey: w.chainKey}}},
		}
		for i, m := range names {
			lost := w.lostInvoice(func(inv *invoice.Invoice) { inv.Merchant[9] = byte(i + 1) })
			w.lose(lost)
			if i == 0 {
				m.DefaultAddresses[w.chainKey] = lost.Merchant
			} else {
				m.Allowed[0].Address = lost.Merchant
			}
			w.Service = w.service(func(c *ledger.Config) { c.Merchants = named{m} })
			if _, err := w.ImportInvoice(t.Context(), copyOf(t, lost, 0, ""), nil); err != nil {
				t.Errorf("with %+v: %v", m, err)
			}
		}
		w.Service = w.service()
		expect.Success(t)(w.ImportInvoice(t.Context(), copyOf(t, lost, 3, secret), []string{secret}))
		another := w.lostInvoice(func(inv *invoice.Invoice) { inv.Amount = invoice.NewAmount(2_000_000) })
		w.lose(another)
		if _, err := w.ImportInvoice(t.Context(), copyOf(t, another, 0, ""), nil); err != nil {
			t.Errorf("at an address that the merchant holds: %v", err)
		}
	})
}

// named has one merchant, with any id.
type named struct{ invoice.Merchant }

func (named) WantsEvents(context.Context, db.Querier, string) (bool, error) { return true, nil }

func (m named) Find(context.Context, string) (invoice.Merchant, bool, error) {
	return m.Merchant, true, nil
}

// TestImportOfAnotherRegistry gives the signed event of an invoice from before its chain had a registry. Only its payment
// shows that it commits to none.
func TestImportOfAnotherRegistry(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		const secret = "whsec_of_the_shop"
		w.create() // which makes its address watched
		lost := w.lostInvoice(func(inv *invoice.Invoice) { inv.Registry = invoice.Address{} })
		w.lose()
		w.holds(lost.Merchant)
		begun := w.head().Number + 1
		part := tagged(w.pay(invoice.NewAmount(400_000)), invoice.Evidence{Calldata: lost.CommitmentID})
		w.mine(start+1, part)
		w.final()
		if done, err := w.ImportInvoice(t.Context(), copyOf(t, lost, 3, secret), []string{secret}); err != nil || done.Invoice.CommitmentID != lost.CommitmentID {
			t.Fatalf("imported %+v, %v; want the commitment %s", done, err, lost.CommitmentID)
		}
		w.fill(begun, w.head(), w.blocks[len(w.blocks)-1:]...)
		w.mine(start + 2)
		w.final()
		if p := w.payment(part); p.InvoiceID != lost.ID || p.Method != invoice.ByCalldata {
			t.Errorf("the part went to %q by %q", p.InvoiceID, p.Method)
		}
	})
}

// TestImportWithCommitment gives the delivery of an invoice from before its chain had a registry, with its commitment. Its
// payer names that only afterwards.
func TestImportWithCommitment(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		const secret = "whsec_of_the_shop"
		lost := w.lostInvoice(func(inv *invoice.Invoice) { inv.Registry = invoice.Address{} })
		w.lose()
		body, err := apiconv.EventBody("evt_1", invoice.EventCreated, lost.CreatedAt, apiconv.InvoiceData(lost))
		w.must(err)
		line, err := json.Marshal(map[string]any{
			"headers": map[string]string{webhook.HeaderSignature: webhook.Sign(secret, time.Unix(1, 0), body)}, "body": string(body),
			"onChainInvoiceId": lost.CommitmentID.String(),
		})
		w.must(err)
		c, err := ledger.ParseInvoiceCopy(line)
		w.must(err)
		if done, err := w.ImportInvoice(t.Context(), c, []string{secret}); err != nil || done.Invoice.CommitmentID != lost.CommitmentID {
			t.Fatalf("imported %+v, %v; want the commitment %s", done, err, lost.CommitmentID)
		}
		w.finalized(w.payFor(lost, number(lost.Amount)))
		w.wantPaidAndRefunded("imported", lost.ID, 0)
	})
}

// TestImportOfNamedInvoice loses an invoice, and the recovery reads a payment that names it, of the amount of another
// invoice, which is open: the payment is not of that one, and pays the invoice that it names once that is imported. One
// that names no invoice is found by its amount.
func TestImportOfNamedInvoice(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		const secret = "whsec_of_the_shop"
		other, third := w.create(), w.create(amount(3_000_000))
		lost := w.lostInvoice(func(inv *invoice.Invoice) { inv.Amount = other.Amount })
		w.lose()
		begun := w.head().Number + 1
		paying := tagged(w.pay(other.Amount), invoice.Evidence{Calldata: lost.CommitmentID})
		plain := tagged(w.pay(third.Amount), invoice.Evidence{Calldata: invoice.Hash{29: 0x2d, 30: 0xc6, 31: 0xc0}})
		w.mine(start+10, paying, plain)
		w.final()
		expect.Equal(t, w.payment(paying).InvoiceID, "", "before the import, the payment is of")
		expect.Equal(t, w.payment(plain).InvoiceID, third.ID, "the payment that names no invoice is of")
		expect.Success(t)(w.ImportInvoice(t.Context(), copyOf(t, lost, 3, secret), []string{secret}))
		w.fill(begun, w.head(), w.blocks[len(w.blocks)-1:]...)
		expect.Equal(t, w.payment(paying).InvoiceID, lost.ID, "the payment is of")
		expect.Equal(t, w.invoice(lost.ID).Status, invoice.Paid, "the imported invoice is")
		expect.Equal(t, w.invoice(other.ID).Status, invoice.Open, "the other invoice is")
	})
}

// TestImportOfOrphanedPayments imports invoices while a reorg has dropped their payments, which were recorded without
// an invoice. Mined again, before or after the lost blocks are read again, the payments pay the imported invoices.
func TestImportOfOrphanedPayments(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		for i, late := range []bool{false, true} {
			w.create() // so that its settlement address is watched
			deposit := w.lostInvoice(func(inv *invoice.Invoice) { inv.Collection = invoice.Deposit })
			direct := w.lostInvoice(func(inv *invoice.Invoice) { inv.Amount = invoice.NewAmount(2_000_000 + 10*uint64(i)) })
			w.lose(deposit, direct)
			w.must(w.db.store.Update(t.Context(), func(tx *db.Tx) error {
				return ledger.InsertLostAddresses(t.Context(), tx, w.chainKey, map[invoice.Address]invoice.Hash{deposit.DepositAddress: deposit.CommitmentID})
			}))
			w.mine(w.head().Time.Unix() + 1)
			w.final()
			first, second := w.deposit(deposit, 1_000_000), w.pay(direct.TransferAmount)
			w.mine(w.head().Time.Unix()+1, first, second)
			w.reorg(1)
			for _, inv := range []invoice.Invoice{deposit, direct} {
				expect.Success(t)(w.ImportInvoice(t.Context(), copyOf(t, inv, 0, ""), nil))
			}
			cur, err := w.Cursor(t.Context(), w.chainKey)
			w.must(err)
			next, head, blocks := cur.Gap.Next, w.head(), slices.Clone(w.blocks)
			read := func() {
				w.fill(next, head, slices.DeleteFunc(blocks, func(b ledger.Block) bool { return b.Number < next })...)
			}
			if late {
				read()
			}
			w.mine(w.head().Time.Unix()+2, first, second)
			if !late {
				read()
			}
			w.final()
			for transfer, inv := range map[*invoice.Transfer]invoice.Invoice{&first: deposit, &second: direct} {
				expect.Equal(t, w.payment(*transfer).InvoiceID, inv.ID, "after the lost blocks %t: the payment to the %s invoice is of", late, inv.Collection)
				expect.Equal(t, w.invoice(inv.ID).Status, invoice.Paid, "after the lost blocks %t: the %s invoice is", late, inv.Collection)
			}
		}
	})
}

// TestImportProperty loses invoices with random terms, and imports them from random kinds of copies.
// Each has the same id, commitment and deposit address again.
func TestImportProperty(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *database) {
		rapid.Check(t, func(r *rapid.T) {
			w := d.world(t)
			var all []invoice.Invoice
			for i := range rapid.IntRange(1, 5).Draw(r, "invoices") {
				all = append(all, w.lostInvoice(func(inv *invoice.Invoice) {
					inv.Amount = invoice.NewAmount(uint64(rapid.IntRange(1_000, 1_000_000).Draw(r, "amount"))*10 + uint64(i))
					inv.ExpiresAt = invoice.Unix(w.seconds.Load() + rapid.Int64Range(1, 1_000_000).Draw(r, "lifetime"))
					inv.Collection = rapid.SampledFrom([]invoice.Collection{invoice.Direct, invoice.Deposit}).Draw(r, "collection")
					inv.Merchant[10] = byte(i)
					inv.Details.Description = rapid.StringMatching(`[a-z<>& ]{0,20}[a-z]`).Draw(r, "description")
				}))
			}
			w.lose(all...)
			for _, inv := range all {
				w.holds(inv.Merchant)
				kind := rapid.IntRange(0, 3).Draw(r, "kind")
				done, err := w.ImportInvoice(t.Context(), copyOf(t, inv, kind, "whsec_x"), nil)
				if err != nil {
					r.Fatalf("copy %d of %+v: %v", kind, inv, err)
				}
				got := w.invoice(inv.ID)
				if got.ID != done.Invoice.ID || got.CommitmentID != inv.CommitmentID || got.DepositAddress != inv.DepositAddress || got.TransferAmount != inv.TransferAmount ||
					!got.Details.Equal(inv.Details) || !got.CreatedAt.Equal(inv.CreatedAt) || !got.ExpiresAt.Equal(inv.ExpiresAt) {
					r.Fatalf("got %+v, want %+v", got, inv)
				}
			}
		})
	})
}

// FuzzParseInvoiceCopy parses arbitrary lines. An accepted line has an invoice with an id.
func FuzzParseInvoiceCopy(f *testing.F) {
	for _, line := range []string{
		`{"id":"inv_00000000000000000000000001","merchantAddress":"0x1"}`, `{"invoice":{"id":"inv_00000000000000000000000001"}}`,
		`{"id":"evt_1","type":"invoice.created","data":{"invoice":{"id":"inv_00000000000000000000000001"}}}`, `{"type":"payment.received","data":{"payment":{}}}`,
		`{"headers":{"X-Service-Signature":"t=1,v1=a"},"body":"{\"data\":{\"invoice\":{\"id\":\"inv_00000000000000000000000001\"}}}"}`,
		`{"headers":{},"body":"{}"}`, `{"body":"{\"body\":\"{}\"}"}`, `{`, `null`, `[]`, `{"data":{"data":{}}}`, `{"invoice":null,"merchantAddress":"0x"}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		c, err := ledger.ParseInvoiceCopy(line)
		if err == nil && (!strings.HasPrefix(c.Invoice.ID, "inv_") || len(c.Invoice.ID) != 30 || (c.Signature == "") != (c.Body == nil)) {
			t.Errorf("%q gives %+v", line, c)
		}
	})
}

// TestLongCopies reads a copy at the limit, and refuses longer ones.
func TestLongCopies(t *testing.T) {
	t.Parallel()
	line := `{"merchantAddress":"0x1","id":"inv_00000000000000000000000001","x":"`
	line += strings.Repeat("x", ledger.MaxCopy-len(line)-2) + `"}`
	if _, err := ledger.ParseInvoiceCopy([]byte(line)); err != nil {
		t.Errorf("at the limit: %.100s", err)
	}
	if _, err := ledger.ParseInvoiceCopy([]byte(line + " ")); err == nil {
		t.Error("a copy above the limit is read")
	}
}
