package ledger_test

import (
	"crypto/ecdsa"
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// account is a payer's account with its private key.
type account struct {
	key     *ecdsa.PrivateKey
	address invoice.Address
}

func newAccount(t *testing.T) account {
	t.Helper()
	key := expect.Must(crypto.GenerateKey())
	return account{key, invoice.Address(crypto.PubkeyToAddress(key.PublicKey))}
}

// sign signs the claim of a transaction for an invoice.
func (a account) sign(t *testing.T, inv invoice.Invoice, tx invoice.Hash) string {
	t.Helper()
	sig, err := crypto.Sign(chain.PersonalHash(chain.ClaimText(1337, inv, tx)), a.key)
	expect.OK(t, err)
	return "0x" + hex.EncodeToString(sig)
}

// signRefund signs for the address of a refund.
func (a account) signRefund(t *testing.T, r invoice.RefundRecord, to invoice.Address) string {
	t.Helper()
	sig, err := crypto.Sign(chain.PersonalHash(chain.RefundClaimText(1337, r, to)), a.key)
	expect.OK(t, err)
	return "0x" + hex.EncodeToString(sig)
}

// unattributedPaymentOf mines a payment of the account that no rule attributes.
func (w *world) unattributedPaymentOf(a account, at int64, amount uint64) ledger.PaymentRow {
	w.t.Helper()
	t := w.pay(invoice.NewAmount(amount))
	t.From = a.address
	w.mine(at, t)
	return w.payment(t)
}

// claimFor claims a payment for an invoice, with a signature if by is not nil.
func (w *world) claimFor(inv invoice.Invoice, p ledger.PaymentRow, by *account) (ledger.ClaimResult, error) {
	c := ledger.Claim{InvoiceID: inv.ID, TxHash: p.TxHash}
	if by != nil {
		c.Signature = by.sign(w.t.(*testing.T), inv, p.TxHash)
	}
	return w.Claim(w.t.Context(), c)
}

func (w *world) claims(paymentID string) []ledger.ClaimRow {
	w.t.Helper()
	found, err := ledger.NewReader(w.db.store).Claims(w.t.Context(), ledger.ClaimFilter{PaymentID: paymentID, Limit: 100})
	w.must(err)
	return found
}

func TestClaimByThePayer(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		payer := newAccount(t)
		inv := w.create()
		p := w.unattributedPaymentOf(payer, start+10, 990_000)
		w.seconds.Add(7)
		for range 2 { // repeating the claim gives the same result
			if got, err := w.claimFor(inv, p, &payer); got != ledger.ClaimCounted || err != nil {
				t.Fatalf("the payer's claim: %q, %v", got, err)
			}
		}
		got := w.payment(p.Transfer)
		if got.InvoiceID != inv.ID || got.Method != invoice.ByClaim || got.AttributedBy != "payer "+chain.Checksum(payer.address) || !got.AttributedAt.Equal(at(start+7)) {
			t.Errorf("the payment is of %q by %q, %q at %s", got.InvoiceID, got.Method, got.AttributedBy, got.AttributedAt)
		}
		expect.Equal(t, got.Note, "signature "+payer.sign(t, inv, p.TxHash), "the note is")
		w.reorg(1)
		w.mine(start+11, p.Transfer)
		if got := w.payment(p.Transfer); got.InvoiceID != inv.ID || got.Method != invoice.ByClaim {
			t.Errorf("mined again, the payment is of %q by %q", got.InvoiceID, got.Method)
		}
		w.final()
		expect.NoDiff(t, cmp.Diff([]string{"invoice.created", "payment.received"}, w.eventTypes(inv)), "events")
		expect.Equal(t, len(w.claims(p.ID)), 0, "claims are left to decide:")
		if got := w.invoice(inv.ID); got.Exception != invoice.Underpaid || number(got.AmountPaid) != 990_000 {
			t.Errorf("the invoice is %s, %q, paid %s", got.Status, got.Exception, got.AmountPaid)
		}
	})
}

// TestClaimByStrangers checks that a claim of another account's payment fails, and does not prevent the payer's own.
func TestClaimByStrangers(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		payer, stranger := newAccount(t), newAccount(t)
		inv := w.create()
		var his []invoice.Invoice
		for range ledger.MaxClaims + 2 {
			his = append(his, w.create())
		}
		p := w.unattributedPaymentOf(payer, start+10, 990_000)
		for _, own := range his {
			if got, err := w.claimFor(own, p, nil); got != ledger.ClaimKept || err != nil {
				t.Fatalf("an unsigned claim: %q, %v", got, err)
			}
			expect.Error(t, ledger.ErrNotThePayer, "signed by another")(w.claimFor(own, p, &stranger))
			// A signature for one invoice is not valid for another.
			replayed := ledger.Claim{InvoiceID: own.ID, TxHash: p.TxHash, Signature: payer.sign(t, inv, p.TxHash)}
			expect.Error(t, ledger.ErrNotThePayer, "with a signature for another invoice")(w.Claim(t.Context(), replayed))
		}
		if got := w.payment(p.Transfer); got.Attributed() {
			t.Fatalf("a stranger's claim gave the payment to %s", got.InvoiceID)
		}
		if got, err := w.claimFor(inv, p, nil); got != ledger.ClaimKept || err != nil {
			t.Errorf("after the strangers' claims, the payer's unsigned one: %q, %v", got, err)
		}
		expect.Equal(t, len(w.claims(p.ID)), len(his)+1, "claims are listed:")
		if got, err := w.claimFor(inv, p, &payer); got != ledger.ClaimCounted || err != nil {
			t.Errorf("the payer's signed claim: %q, %v", got, err)
		}
		if _, err := w.claimFor(his[0], p, &payer); !errors.Is(err, ledger.ErrNothingToClaim) {
			t.Errorf("a payment that an invoice has is claimed again: %v", err)
		}
		for _, c := range w.claims(p.ID) {
			if c.AttributedTo != inv.ID || c.Signed {
				t.Errorf("a claim shows the payment at %q, signed %t", c.AttributedTo, c.Signed)
			}
		}
	})
}

func TestInconclusiveClaimsAreStored(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *database) {
		for name, play := range map[string]func(w *world, payer account) (invoice.Invoice, ledger.PaymentRow){
			"before the invoice": func(w *world, payer account) (invoice.Invoice, ledger.PaymentRow) {
				w.create() // so that the address is known
				p := w.unattributedPaymentOf(payer, start+10, 990_000)
				w.seconds.Add(1000)
				return w.create(amount(2_000_000)), p
			},
			"sent back": func(w *world, payer account) (invoice.Invoice, ledger.PaymentRow) {
				inv := w.create()
				p := w.unattributedPaymentOf(payer, start+10, 990_000)
				w.must(d.store.Update(t.Context(), func(tx *db.Tx) error {
					back := w.back(invoice.NewAmount(990_000))
					if err := ledger.SaveRefundedSums(t.Context(), tx, map[string]ledger.RefundedSum{p.ID: {All: back.Amount}}); err != nil {
						return err
					}
					r := invoice.Refund{
						ID: "ref_" + p.ID, PaymentID: p.ID, InvoiceID: inv.ID, MerchantID: inv.MerchantID, Status: invoice.Pending, Transfer: back,
					}
					if err := ledger.SaveRefunds(t.Context(), tx, r); err != nil {
						return err
					}
					return ledger.RefreshItems(t.Context(), tx, r.ID)
				}))
				return inv, p
			},
		} {
			w := d.world(t)
			payer := newAccount(t)
			inv, p := play(w, payer)
			if got, err := w.claimFor(inv, p, nil); got != ledger.ClaimKept || err != nil {
				t.Errorf("%s, unsigned: %q, %v", name, got, err)
			}
			if got, err := w.claimFor(inv, p, &payer); got != ledger.ClaimKept || err != nil {
				t.Errorf("%s, signed: %q, %v", name, got, err)
			}
			if got, err := w.claimFor(inv, p, nil); got != ledger.ClaimKept || err != nil {
				t.Errorf("%s, unsigned again: %q, %v", name, got, err)
			}
			claims := w.claims(p.ID)
			if len(claims) != 1 || !claims[0].Signed || claims[0].InvoiceID != inv.ID || claims[0].AttributedTo != "" {
				t.Errorf("%s: claims %+v", name, claims)
			}
			if w.payment(p.Transfer).Attributed() {
				t.Errorf("%s: the payment is attributed", name)
			}
			_, err := w.attribute(p, inv)
			used := new(ledger.UsedError)
			if refunding := errors.As(err, &used); refunding != (name == "sent back") || !refunding && err != nil {
				t.Errorf("%s: the merchant attributes it: %v", name, err)
			}
		}
	})
}

// TestClaimsAreBoundedForAnInvoice claims payments up to the limit. Claims of payments that were attributed since do not
// count.
func TestClaimsAreBoundedForAnInvoice(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		payer := newAccount(t)
		inv, other := w.create(), w.create()
		first := w.unattributedPaymentOf(payer, start+10, 990_000)
		last := first
		for i := range ledger.MaxClaims + 1 {
			if i > 0 {
				last = w.unattributedPaymentOf(payer, start+10, 990_000+uint64(i))
			}
			_, err := w.claimFor(inv, last, nil)
			if want := i == ledger.MaxClaims; errors.Is(err, ledger.ErrTooManyClaims) != want || !want && err != nil {
				t.Fatalf("claim %d: %v", i, err)
			}
		}
		if got, err := w.claimFor(other, last, nil); got != ledger.ClaimKept || err != nil {
			t.Errorf("for another invoice: %q, %v", got, err)
		}
		w.must(w.attribute(first, other))
		beyond := w.unattributedPaymentOf(payer, start+10, 2_000_000)
		for _, p := range []ledger.PaymentRow{last, beyond} {
			_, err := w.claimFor(inv, p, nil)
			if want := p.ID == beyond.ID; errors.Is(err, ledger.ErrTooManyClaims) != want || !want && err != nil {
				t.Errorf("once one payment was decided, a claim of %s: %v", p.Amount, err)
			}
		}
		if got, err := w.claimFor(inv, beyond, &payer); got != ledger.ClaimCounted || err != nil {
			t.Errorf("the payer's signed claim: %q, %v", got, err)
		}
	})
}

// TestClaimIsCountedOnce claims a transaction with many payments, most of them dust. One claim is stored, for the
// payment nearest to the amount due, also if the claim is signed or repeated.
func TestClaimIsCountedOnce(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		payer := newAccount(t)
		inv := w.create()
		p := w.pay(invoice.NewAmount(1))
		p.From = payer.address
		var many []invoice.Transfer
		for i := range 300 {
			p.Ordinal = i
			many = append(many, p)
		}
		for i, n := range []uint64{20_000, 990_000, 970_000} {
			many[i+200].Amount = invoice.NewAmount(n)
		}
		w.mine(start+10, many...)
		for _, by := range []*account{nil, nil, &payer} {
			if got, err := w.claimFor(inv, w.payment(p), by); got != ledger.ClaimKept || err != nil {
				t.Errorf("the claim: %q, %v", got, err)
			}
			claims, err := ledger.OpenClaimsOfInvoice(t.Context(), w.db.store, inv.ID, 1000)
			w.must(err)
			if want := w.payment(many[201]).ID; len(claims) != 1 || claims[0].PaymentID != want || claims[0].Signed != (by != nil) {
				t.Errorf("claims are kept: %+v; want one, to %s", claims, want)
			}
		}
	})
}

// TestDustNeedsASignedClaim claims payments just below and at the dust limit.
func TestDustNeedsASignedClaim(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		payer := newAccount(t)
		inv := w.create()
		limit := number(inv.DustLimit())
		trifle, more := w.unattributedPaymentOf(payer, start+10, limit-1), w.unattributedPaymentOf(payer, start+11, limit)
		if got, err := w.claimFor(inv, trifle, nil); got != "" || !errors.Is(err, ledger.ErrNothingToClaim) {
			t.Errorf("a trifle: %q, %v; want ErrNothingToClaim", got, err)
		}
		if got, err := w.claimFor(inv, more, nil); got != ledger.ClaimKept || err != nil {
			t.Errorf("at the limit: %q, %v", got, err)
		}
		if got, err := w.claimFor(inv, trifle, &payer); got != ledger.ClaimCounted || err != nil {
			t.Errorf("a trifle, signed: %q, %v", got, err)
		}
	})
}

func TestClaimErrors(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		payer := newAccount(t)
		inv := w.create()
		elsewhere := w.create(func(d *invoice.Draft) { d.Merchant = invoice.Address{0: 0xab, 19: byte(w.txs)} })
		p := w.unattributedPaymentOf(payer, start+10, 990_000)
		for name, test := range map[string]struct {
			claim ledger.Claim
			want  error
		}{
			"no such invoice":       {ledger.Claim{InvoiceID: "inv_none", TxHash: p.TxHash}, db.ErrNotFound},
			"no such transaction":   {ledger.Claim{InvoiceID: inv.ID, TxHash: invoice.Hash{7}}, ledger.ErrNothingToClaim},
			"to another address":    {ledger.Claim{InvoiceID: elsewhere.ID, TxHash: p.TxHash}, ledger.ErrNothingToClaim},
			"signed for it, too":    {ledger.Claim{InvoiceID: elsewhere.ID, TxHash: p.TxHash, Signature: payer.sign(t, elsewhere, p.TxHash)}, ledger.ErrNothingToClaim},
			"a malformed signature": {ledger.Claim{InvoiceID: inv.ID, TxHash: p.TxHash, Signature: "0x00"}, chain.ErrSignature},
		} {
			if got, err := w.Claim(t.Context(), test.claim); got != "" || !errors.Is(err, test.want) {
				t.Errorf("%s: %q, %v; want %v", name, got, err, test.want)
			}
		}
		w.reorg(1)
		if got, err := w.claimFor(inv, p, &payer); got != "" || !errors.Is(err, ledger.ErrNothingToClaim) {
			t.Errorf("taken back by the network: %q, %v", got, err)
		}
	})
}

// TestSignedClaimIsNotLimited checks that a payer's signed claim is stored although
// strangers have reached the limit of claims of the invoice.
func TestSignedClaimIsNotLimited(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		inv := w.create(func(d *invoice.Draft) { d.ExpiresAt = invoice.Unix(start + 60) })
		for i := range ledger.MaxClaims {
			p := w.pay(invoice.NewAmount(uint64(70_000 + i)))
			w.mine(start+1+int64(i), p)
			expect.Success(t)(w.Claim(t.Context(), ledger.Claim{InvoiceID: inv.ID, TxHash: p.TxHash}))
		}
		payer := newAccount(t)
		p := w.unattributedPaymentOf(payer, start+60+int64(invoice.LateWindow/time.Second)+100, 990_000)
		if _, err := w.claimFor(inv, p, &payer); err != nil {
			t.Errorf("the payer's signed claim: %v", err)
		}
	})
}
