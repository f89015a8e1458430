package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

func TestScenarios(t *testing.T) {
	t.Parallel()
	onSQLite(t, playScenarios)
}

// playScenarios plays what can happen to an invoice over 1,000,000 that expires 3600 s
// after the start, and checks its state.
func playScenarios(t *testing.T, d *database) {
	const (
		created, received, paidEvent = "invoice.created", "payment.received", "invoice.paid"
		expired, refunded            = "invoice.expired", "payment.refunded"
	)
	type want struct {
		status         invoice.Status
		exception      invoice.Exception
		paid, refunded uint64
		suffixes       uint64 // number of suffixes in the paid amount
		events         []string
		intents        []string
	}
	n := invoice.NewAmount
	for name, test := range map[string]struct {
		play func(w *world, inv invoice.Invoice)
		want want
	}{
		"transfer amount": {func(w *world, inv invoice.Invoice) {
			w.mine(start+10, w.pay(inv.TransferAmount))
			w.final()
		}, want{invoice.Paid, "", 1_000_000, 0, 1, []string{created, received, paidEvent}, []string{"open due 0", "close due 0"}}},
		"bare amount": {func(w *world, inv invoice.Invoice) {
			w.mine(start+10, w.pay(inv.Amount))
			w.final()
		}, want{invoice.Paid, "", 1_000_000, 0, 0, []string{created, received, paidEvent}, []string{"open due 0", "close due 0"}}},
		"registry": {func(w *world, inv invoice.Invoice) {
			b := w.next(start+10, tagged(w.pay(inv.Amount), invoice.Evidence{Registry: inv.CommitmentID}))
			b.Registry = []ledger.RegistryEvent{{Registry: registry, Kind: ledger.RegistryPaid, CommitmentID: inv.CommitmentID}}
			w.observe(b)
			w.final()
		}, want{invoice.Paid, "", 1_000_000, 0, 0, []string{created, received, paidEvent}, []string{"open done 101"}}},
		"not final": {func(w *world, inv invoice.Invoice) {
			w.mine(start+10, w.pay(inv.Amount))
		}, want{invoice.Open, "", 0, 0, 0, []string{created, received}, []string{"open due 0"}}},
		"two parts": {func(w *world, inv invoice.Invoice) {
			tag := invoice.Evidence{Calldata: inv.CommitmentID}
			w.mine(start+10, tagged(w.pay(n(400_000)), tag))
			w.final()
			w.mine(start+20, tagged(w.pay(n(600_000)), tag))
			w.final()
		}, want{invoice.Paid, "", 1_000_000, 0, 0, []string{created, received, received, paidEvent}, []string{"open due 0", "close due 0"}}},
		"two parts in one transaction": {func(w *world, inv invoice.Invoice) {
			one := tagged(w.pay(n(400_000)), invoice.Evidence{Calldata: inv.CommitmentID})
			two := one
			two.Ordinal, two.Amount = 1, n(600_000)
			w.mine(start+10, one, two)
			w.final()
		}, want{invoice.Paid, "", 1_000_000, 0, 0, []string{created, received, received, paidEvent}, []string{"open due 0", "close due 0"}}},
		"underpaid and expired": {func(w *world, inv invoice.Invoice) {
			w.mine(start+10, tagged(w.pay(n(999_999)), invoice.Evidence{Calldata: inv.CommitmentID}))
			w.mine(start + 3601)
			w.final()
		}, want{invoice.Expired, invoice.Underpaid, 999_999, 0, 0, []string{created, received, expired}, []string{"open due 0", "close due 0"}}},
		"overpaid": {func(w *world, inv invoice.Invoice) {
			w.mine(start+10, tagged(w.pay(n(5_000_000)), invoice.Evidence{Calldata: inv.CommitmentID}))
			w.final()
		}, want{invoice.Paid, invoice.Overpaid, 5_000_000, 0, 0, []string{created, received, paidEvent}, []string{"open due 0", "close due 0"}}},
		"twice": {func(w *world, inv invoice.Invoice) {
			w.mine(start+10, w.pay(inv.TransferAmount), w.pay(inv.TransferAmount))
			w.final()
		}, want{invoice.Paid, invoice.Duplicate, 2_000_000, 0, 2, []string{created, received, received, paidEvent}, []string{"open due 0", "close due 0"}}},
		"again when it was final": {func(w *world, inv invoice.Invoice) {
			w.mine(start+10, w.pay(inv.TransferAmount))
			w.final()
			w.mine(start+20, w.pay(inv.TransferAmount))
			w.final()
		}, want{invoice.Paid, invoice.Duplicate, 2_000_000, 0, 2, []string{created, received, paidEvent, received}, []string{"open due 0", "close due 0"}}},
		"late": {func(w *world, inv invoice.Invoice) {
			w.mine(start+3601, w.pay(inv.TransferAmount))
			w.final()
		}, want{invoice.Expired, invoice.Late, 1_000_000, 0, 1, []string{created, received, expired}, []string{"open due 0", "close due 0"}}},
		"late when it had expired": {func(w *world, inv invoice.Invoice) {
			w.mine(start + 3601)
			w.final()
			w.mine(start+3602, w.pay(inv.TransferAmount))
			w.final()
		}, want{invoice.Expired, invoice.Late, 1_000_000, 0, 1, []string{created, expired, received}, []string{"open due 0", "close due 0"}}},
		"last second": {func(w *world, inv invoice.Invoice) {
			w.mine(start+3600, w.pay(inv.TransferAmount))
			w.mine(start + 9999)
			w.final()
		}, want{invoice.Paid, "", 1_000_000, 0, 1, []string{created, received, paidEvent}, []string{"open due 0", "close due 0"}}},
		"last second, seen a day later": {func(w *world, inv invoice.Invoice) {
			w.seconds.Add(86400)
			w.mine(start + 3599)
			w.final()
			w.mine(start+3600, w.pay(inv.TransferAmount))
			w.mine(start + 3601)
			w.final()
		}, want{invoice.Paid, "", 1_000_000, 0, 1, []string{created, received, paidEvent}, []string{"open due 0", "close due 0"}}},
		"not expired in its last second": {func(w *world, _ invoice.Invoice) {
			w.mine(start + 3600)
			w.final()
		}, want{invoice.Open, "", 0, 0, 0, []string{created}, []string{"open due 0"}}},
		"expired by the chain alone": {func(w *world, _ invoice.Invoice) {
			w.mine(start + 3601)
			w.final()
		}, want{invoice.Expired, "", 0, 0, 0, []string{created, expired}, []string{"open due 0", "close due 0"}}},
		"not expired by the clock": {func(w *world, _ invoice.Invoice) {
			w.seconds.Add(86400)
			w.mine(start + 3601)
		}, want{invoice.Open, "", 0, 0, 0, []string{created}, []string{"open due 0"}}},
		"refunded whole": {func(w *world, inv invoice.Invoice) {
			w.mine(start+10, w.pay(inv.Amount))
			w.final()
			w.mine(start+20, w.back(inv.Amount))
			w.final()
		}, want{invoice.Paid, "", 1_000_000, 1_000_000, 0, []string{created, received, paidEvent, refunded}, []string{"open due 0", "close due 0"}}},
		"refunded before it is final": {func(w *world, inv invoice.Invoice) {
			w.mine(start+10, w.pay(inv.Amount))
			w.mine(start+20, w.back(inv.Amount))
			w.final()
		}, want{invoice.Open, "", 1_000_000, 1_000_000, 0, []string{created, received, refunded}, []string{"open due 0"}}},
		"refunded in part, twice": {func(w *world, inv invoice.Invoice) {
			w.mine(start+10, w.pay(inv.Amount))
			w.final()
			w.mine(start+20, w.back(n(300_000)), w.back(n(200_000)))
			w.final()
		}, want{invoice.Paid, "", 1_000_000, 500_000, 0, []string{created, received, paidEvent, refunded, refunded}, []string{"open due 0", "close due 0"}}},
		"refunded more than once is not": {func(w *world, inv invoice.Invoice) {
			w.mine(start+10, w.pay(inv.Amount))
			w.final()
			w.mine(start+20, w.back(inv.Amount), w.back(inv.Amount), w.back(n(1)))
			w.final()
		}, want{invoice.Paid, "", 1_000_000, 1_000_000, 0, []string{created, received, paidEvent, refunded}, []string{"open due 0", "close due 0"}}},
		"refund not final": {func(w *world, inv invoice.Invoice) {
			w.mine(start+10, w.pay(inv.Amount))
			w.final()
			w.mine(start+20, w.back(inv.Amount))
		}, want{invoice.Paid, "", 1_000_000, 0, 0, []string{created, received, paidEvent}, []string{"open due 0", "close due 0"}}},
		"late payment refunded": {func(w *world, inv invoice.Invoice) {
			w.mine(start+3601, w.pay(inv.TransferAmount))
			w.mine(start+3700, w.back(n(999_999)))
			w.final()
		}, want{invoice.Expired, invoice.Late, 1_000_000, 999_999, 1, []string{created, received, refunded, expired}, []string{"open due 0", "close due 0"}}},
		"mined again too late": {func(w *world, inv invoice.Invoice) {
			p := w.pay(inv.Amount)
			w.mine(start+10, p)
			w.reorg(1)
			w.mine(start+3601, p)
			w.final()
		}, want{invoice.Expired, invoice.Late, 1_000_000, 0, 0, []string{created, received, expired}, []string{"open due 0", "close due 0"}}},
		"nothing, to the address": {func(w *world, inv invoice.Invoice) {
			w.mine(start+10, tagged(w.pay(invoice.Amount{}), invoice.Evidence{Calldata: inv.CommitmentID}))
			w.final()
		}, want{invoice.Open, "", 0, 0, 0, []string{created}, []string{"open due 0"}}},
		"from the address to itself": {func(w *world, inv invoice.Invoice) {
			p := w.pay(inv.TransferAmount)
			p.From = p.To
			w.mine(start+10, p)
			w.final()
		}, want{invoice.Open, "", 0, 0, 0, []string{created}, []string{"open due 0"}}},
		"another token": {func(w *world, inv invoice.Invoice) {
			p := w.pay(inv.TransferAmount)
			p.Token = invoice.Address{9}
			w.mine(start+10, p)
			w.final()
		}, want{invoice.Open, "", 0, 0, 0, []string{created}, []string{"open due 0"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := d.world(t)
			inv := w.create()
			test.play(w, inv)
			w.must(w.Confirm(t.Context(), w.chainKey, w.blocks[0].Header)) // already final, so it has no effect
			got := w.invoice(inv.ID)
			suffix := number(inv.TransferAmount) - 1_000_000
			paid, refunded := number(got.AmountPaid)-test.want.suffixes*suffix, number(got.AmountRefunded)
			if got.Status != test.want.status || got.Exception != test.want.exception || paid != test.want.paid || refunded != test.want.refunded {
				t.Errorf("it is %s, %q, paid %d and refunded %d; want %+v", got.Status, got.Exception, paid, refunded, test.want)
			}
			expect.NoDiff(t, cmp.Diff(test.want.events, w.eventTypes(inv)), "events")
			expect.NoDiff(t, cmp.Diff(test.want.intents, w.intents(inv)), "intents")
		})
	}
}
