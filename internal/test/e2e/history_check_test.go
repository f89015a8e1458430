package e2e

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/webhook"
)

// check compares payments, invoices and events with the chain.
func (h *history) check() {
	h.Helper()
	shop := h.parties()
	all, err := movements(h.Context(), h.node(), shop.token)
	if err != nil {
		h.Fatal(err)
	}
	payments := make(map[string]string) // ids of payments that must be confirmed
	must := make(map[string]bool)       // events, as "type subject"
	paid := make(map[*bill][]movement)
	back := make(map[*bill]*big.Int)
	for _, m := range all {
		switch {
		case m.to == shop.shop:
			b, known := h.payment[m.tx]
			if !known {
				h.Fatalf("nobody knows of the transfer %+v", m)
			}
			name := ""
			if b != nil {
				name = b.made.ID
				paid[b] = append(paid[b], m)
				must[webhook.PaymentReceived+" "+m.id(invoice.PrefixPayment, shop.chainKey)] = true
			}
			payments[m.id(invoice.PrefixPayment, shop.chainKey)] = fmt.Sprintf("%s %s from %s in block %d for %q", m.tx, m.amount, m.from, m.block, name)
		case m.from == shop.shop:
			b := h.refund[m.tx]
			if back[b] == nil {
				back[b] = new(big.Int)
			}
			back[b].Add(back[b], m.amount)
			must[webhook.PaymentRefunded+" "+m.id(invoice.PrefixRefund, shop.chainKey)] = true
		}
	}
	h.Logf("%d bills, %d transactions, %d payments on the chain in the end", len(h.bills), len(h.payment)+len(h.refund), len(payments))
	h.checkPayments(payments)
	for _, b := range h.bills {
		must[webhook.InvoiceCreated+" "+b.made.ID] = true
		want := b.state(paid[b])
		if back[b] != nil {
			want.back = back[b].String()
			if want.exception == apitypes.ExceptionUnderpaid && want.back == want.paid {
				want.exception = "" // all of it was refunded
			}
		}
		inv, err := h.client().Invoice(h.Context(), b.made.ID)
		if err != nil {
			h.Fatal(err)
		}
		if b.refunded && back[b] == nil && want.exception == apitypes.ExceptionUnderpaid && inv.Exception == "" {
			want.exception = "" // a reorg dropped the refund, which is still expected for some minutes
		}
		got := invoiceState{inv.Status, common.HexToHash(inv.SettledTxHash), inv.AmountPaid, inv.AmountRefunded, inv.Exception}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(invoiceState{})); diff != "" {
			h.Errorf("bill %+v, paid by %v (-want +got):\n%s", b, paid[b], diff)
		}
		if want.status != apitypes.StatusOpen {
			must["invoice."+string(want.status)+" "+b.made.ID] = true
		}
	}
	h.checkEvents(must)
}

// state returns the expected state of a bill, from the transfers that pay it in the order
// of the chain.
func (b *bill) state(transfers []movement) invoiceState {
	s := untouched
	var total, inTime, dust, dustInTime big.Int
	for _, m := range transfers {
		if b.hundredfoldLess(m.amount) {
			dust.Add(&dust, m.amount)
		}
	}
	negligible := b.hundredfoldLess(&dust)
	ceiling := new(big.Int).Add(b.amount, big.NewInt(invoice.MaxSuffix))
	for _, m := range transfers {
		total.Add(&total, m.amount)
		ignored := negligible && b.hundredfoldLess(m.amount) // it sets no exception
		switch {
		case s.status == apitypes.StatusPaid:
			if !ignored {
				s.exception = apitypes.ExceptionDuplicate
			}
		case m.blockTime > b.made.Invoice.ExpiresAt:
			if !ignored {
				s.exception = apitypes.ExceptionLate
			}
		default:
			if ignored {
				dustInTime.Add(&dustInTime, m.amount)
			}
			if inTime.Add(&inTime, m.amount); inTime.Cmp(b.amount) < 0 {
				if !ignored {
					s.exception = apitypes.ExceptionUnderpaid
				}
				continue
			}
			s.status, s.by, s.exception = apitypes.StatusPaid, m.tx, ""
			if new(big.Int).Sub(&inTime, &dustInTime).Cmp(ceiling) > 0 {
				s.exception = apitypes.ExceptionOverpaid
			}
		}
	}
	if s.paid = total.String(); s.status == apitypes.StatusOpen && b.made.Invoice.ExpiresAt-b.made.Invoice.CreatedAt < longLived/2 {
		s.status = apitypes.StatusExpired
	}
	return s
}

// hundredfoldLess reports whether an amount is less than a hundredth of the bill's.
func (b *bill) hundredfoldLess(amount *big.Int) bool {
	return new(big.Int).Mul(amount, big.NewInt(100)).Cmp(b.amount) < 0
}

// checkPayments compares the listed payments: those on the chain must be confirmed, and
// the others orphaned.
func (h *history) checkPayments(want map[string]string) {
	h.Helper()
	for p, err := range h.client().Payments(h.Context(), client.PaymentFilter{IncludePending: true, IncludeUnattributed: true}) {
		if err != nil {
			h.Fatal(err)
		}
		got := fmt.Sprintf("%s %s from %s in block %d for %q", p.TxHash, p.Amount, p.From, p.BlockNumber, p.InvoiceID)
		switch expected, on := want[p.ID]; {
		case !on && p.Status != apitypes.PaymentOrphaned:
			h.Errorf("false or doubled: %s is %s", got, p.Status)
		case on && (p.Status != apitypes.PaymentConfirmed || got != expected):
			h.Errorf("%s is %s; on the chain it is\n%s", got, p.Status, expected)
		}
		delete(want, p.ID)
	}
	for _, p := range want {
		h.Errorf("missed: %s", p)
	}
}

// checkEvents waits for the expected events, and fails the test if there are others, except events of
// orphaned payments, which may have been observed.
func (h *history) checkEvents(must map[string]bool) {
	h.Helper()
	var missing map[string]bool
	err := await(within(h, recovery), func() bool {
		missing = make(map[string]bool)
		for name := range must {
			missing[name] = true
		}
		events, _ := h.receiver().got()
		for _, e := range events {
			if e.accepted > 0 {
				delete(missing, e.Type+" "+e.Subject)
			}
		}
		return len(missing) == 0
	})
	if err != nil {
		h.Errorf("events that did not come: %v", missing)
	}
	events, _ := h.receiver().got()
	came := make(map[string]bool)
	for _, e := range events {
		name := e.Type + " " + e.Subject
		if came[name] {
			h.Errorf("two events tell of one thing: %s", name)
		}
		came[name] = true
		if !must[name] && e.Type != webhook.PaymentReceived {
			h.Errorf("false: %s", e.body)
		}
	}
	h.receiver().clean()
}
