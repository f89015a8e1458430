package ledger_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// screened is a world with payments that are screened, and what was done to them.
type screened struct {
	*world
	r        *rapid.T
	invoices []invoice.Invoice
	paid     []invoice.Transfer // transfers that were ever mined, also orphaned ones
	counted  map[string]bool    // payments with a verdict that lets them count, while their movement is the same
}

// mineSome mines a block, with or without new payments or orphaned ones.
func (s *screened) mineSome() {
	var transfers []invoice.Transfer
	for _, t := range s.paid {
		if s.payment(t).Status == invoice.Orphaned && rapid.Bool().Draw(s.r, "again") {
			if rapid.IntRange(0, 3).Draw(s.r, "other payer") == 0 {
				t.From = invoice.Address{0xde, byte(s.txs)}
				delete(s.counted, s.payment(t).ID)
			}
			transfers = append(transfers, t)
		}
	}
	for range rapid.IntRange(0, 2).Draw(s.r, "payments") {
		inv := rapid.SampledFrom(s.invoices).Draw(s.r, "invoice")
		share := rapid.SampledFrom([]uint64{1_000_000, 400_000, 600_000}).Draw(s.r, "amount")
		t := tagged(s.pay(invoice.NewAmount(share)), invoice.Evidence{Calldata: inv.CommitmentID})
		if rapid.IntRange(0, 4).Draw(s.r, "unattributed") == 0 {
			t.Evidence = invoice.Evidence{}
		}
		s.paid, transfers = append(s.paid, t), append(transfers, t)
	}
	s.mine(s.head().Time.Unix()+int64(rapid.IntRange(1, 1200).Draw(s.r, "later")), transfers...)
}

// some returns one of the payments with a state of screening; ok is false without one.
func (s *screened) some(of invoice.Screening) (p ledger.PaymentRow, ok bool) {
	var all []ledger.PaymentRow
	for _, t := range s.paid {
		if p := s.payment(t); p.Screening == of {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return p, false
	}
	return rapid.SampledFrom(all).Draw(s.r, string(of)), true
}

// verdict records a verdict about a waiting payment.
func (s *screened) verdict() {
	if p, ok := s.some(invoice.ScreeningWaiting); ok {
		to := rapid.SampledFrom([]invoice.Screening{invoice.ScreeningAccepted, invoice.ScreeningQuarantined}).Draw(s.r, "verdict")
		if !s.screened(p, to) {
			s.r.Fatalf("%s did not become %s", p.ID, to)
		}
		s.counted[p.ID] = to == invoice.ScreeningAccepted
	}
}

// decide releases or rejects a quarantined payment.
func (s *screened) decide() {
	if p, ok := s.some(invoice.ScreeningQuarantined); ok && p.Status != invoice.Orphaned {
		o := rapid.SampledFrom([]invoice.Outcome{invoice.Released, invoice.Rejected}).Draw(s.r, "decision")
		if _, err := s.world.decide(p.Transfer, o); err != nil {
			s.r.Fatalf("%s is not %s: %v", p.ID, o, err)
		}
		s.counted[p.ID] = o == invoice.Released
	}
}

// attribute attributes a payment by hand, if it can be.
func (s *screened) attribute() {
	t := rapid.SampledFrom(s.paid).Draw(s.r, "payment")
	p, inv := s.payment(t), rapid.SampledFrom(s.invoices).Draw(s.r, "invoice")
	if _, err := s.world.attribute(p, inv); err == nil && p.Screening == invoice.ScreeningRejected {
		s.r.Fatalf("%s was rejected and attributed", p.ID)
	}
}

// check compares the invoices with the payments that may count.
func (s *screened) check(*rapid.T) {
	for _, inv := range s.invoices {
		var sum invoice.Amount
		payments, err := ledger.NewReader(s.db.store).PaymentsOfInvoices(s.t.Context(), []string{inv.ID})
		s.must(err)
		rows := make([]invoice.Payment, len(payments))
		for i, p := range payments {
			rows[i] = p.Payment
			if s.counted[p.ID] && p.Status == invoice.Confirmed {
				sum = sum.Plus(p.Amount)
			}
			if p.Status == invoice.Confirmed && !s.counted[p.ID] {
				s.r.Fatalf("%s is confirmed with the screening %q", p.ID, p.Screening)
			}
			if p.Status == invoice.Held && p.BlockNumber > s.confirmed() {
				s.r.Fatalf("%s is held in block %d, which is not final", p.ID, p.BlockNumber)
			}
			if p.Screening == invoice.ScreeningWaiting && p.Status != invoice.Orphaned && !p.BlockTime.After(inv.ExpiresAt) &&
				s.invoice(inv.ID).Status == invoice.Expired && p.AttributedBy == "" {
				s.r.Fatalf("%s expired while %s waits", inv.ID, p.ID)
			}
		}
		is := s.invoice(inv.ID)
		if is.AmountPaid != sum {
			s.r.Fatalf("%s has %s, want %s", inv.ID, is.AmountPaid, sum)
		}
		again := is.Recount(rows)
		if again.AmountPaid != is.AmountPaid || again.Status != is.Status || again.Sums.InTime != is.Sums.InTime || again.Sums.Late != is.Sums.Late {
			s.r.Fatalf("%s is %+v, added up %+v", inv.ID, is.Sums, again.Sums)
		}
	}
	for _, t := range s.paid {
		p := s.payment(t)
		if p.Status == invoice.Pending && p.BlockNumber <= s.confirmed() {
			s.r.Fatalf("%s is pending in a final block", p.ID)
		}
		var isItem bool
		s.must(s.db.sql.QueryRowContext(s.t.Context(), "SELECT coalesce(item, '') = 'quarantined' FROM payments WHERE id = $1", p.ID).Scan(&isItem))
		if isItem != (p.Screening == invoice.ScreeningQuarantined && p.Status != invoice.Orphaned) {
			s.r.Fatalf("%s is %s, %q, and in the inbox: %v", p.ID, p.Status, p.Screening, isItem)
		}
	}
}

// confirmed returns the number of the newest final block.
func (s *screened) confirmed() uint64 {
	cur, err := s.Cursor(s.t.Context(), s.chainKey)
	s.must(err)
	return cur.Confirmed.Number
}

// TestScreeningProperty draws histories of screened payments: one that waits, is quarantined or rejected never counts,
// one that was accepted or released counts once it is final, and all leave the wait.
func TestScreeningProperty(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		rapid.Check(t, func(r *rapid.T) {
			s := &screened{world: d.screening(t), r: r, counted: make(map[string]bool)}
			for i := range 3 {
				s.invoices = append(s.invoices, s.create(amount(1_000_000+uint64(i))))
			}
			s.mineSome()
			for range rapid.IntRange(5, 25).Draw(r, "steps") {
				switch rapid.IntRange(0, 6).Draw(r, "step") {
				case 0, 1:
					s.mineSome()
				case 2:
					at := max(s.confirmed(), s.head().Number-uint64(rapid.IntRange(0, 2).Draw(r, "not final")))
					for _, b := range s.blocks {
						if b.Header.Number == at {
							s.must(s.Confirm(t.Context(), s.chainKey, b.Header))
						}
					}
				case 3:
					if most := int(s.head().Number - s.confirmed()); most > 0 {
						s.reorg(rapid.IntRange(1, most).Draw(r, "blocks"))
					}
				case 4:
					s.verdict()
				case 5:
					s.decide()
				case 6:
					if len(s.paid) > 0 {
						s.attribute()
					}
				}
				s.check(r)
			}
			for _, ok := s.some(invoice.ScreeningWaiting); ok; _, ok = s.some(invoice.ScreeningWaiting) {
				s.verdict()
			}
			s.final()
			s.check(r)
		})
	})
}
