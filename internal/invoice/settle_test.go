package invoice_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
)

// paid returns a confirmed payment of openInvoice("a"). Its position is given by its block's number.
func paid(block uint64, blockTime int64, amount uint64) invoice.Payment {
	m := transfer(amount)
	m.Position = invoice.Position{BlockNumber: block, BlockTime: invoice.Unix(blockTime)}
	m.TxHash = invoice.Hash{0: 0xf0, 31: byte(block)}
	return invoice.Payment{Transfer: m, ID: fmt.Sprintf("pay_%d", block), InvoiceID: "a", Status: invoice.Confirmed}
}

func TestSettle(t *testing.T) {
	t.Parallel()
	change := func(p invoice.Payment, by func(*invoice.Payment)) invoice.Payment { by(&p); return p }
	type payments = []invoice.Payment
	for _, test := range []struct {
		name      string
		payments  payments
		before    invoice.Status
		after     invoice.Status
		settledBy uint64 // block of the transaction that completed the amount
		total     uint64
		exception invoice.Exception
	}{
		{"nothing", nil, invoice.Open, invoice.Open, 0, 0, ""},
		{"bare amount", payments{paid(1, 1500, 100)}, invoice.Open, invoice.Paid, 1, 100, ""},
		{"a suffix is no overpayment", payments{paid(1, 1500, 107)}, invoice.Open, invoice.Paid, 1, 107, ""},
		{"between them", payments{paid(1, 1500, 104)}, invoice.Open, invoice.Paid, 1, 104, ""},
		{"the largest suffix", payments{paid(1, 1500, 1099)}, invoice.Open, invoice.Paid, 1, 1099, ""},
		{"one more than the largest suffix", payments{paid(1, 1500, 1100)}, invoice.Open, invoice.Paid, 1, 1100, invoice.Overpaid},
		{"one short", payments{paid(1, 1500, 99)}, invoice.Open, invoice.Open, 0, 99, invoice.Underpaid},
		{"two that add up", payments{paid(1, 1500, 60), paid(2, 1600, 40)}, invoice.Open, invoice.Paid, 2, 100, ""},
		{"two that add up, told backwards", payments{paid(2, 1600, 40), paid(1, 1500, 60)}, invoice.Open, invoice.Paid, 2, 100, ""},
		{"two that exceed", payments{paid(1, 1500, 60), paid(2, 1600, 1060)}, invoice.Open, invoice.Paid, 2, 1120, invoice.Overpaid},
		{"last second", payments{paid(1, 2000, 100)}, invoice.Open, invoice.Paid, 1, 100, ""},
		{"a second late", payments{paid(1, 2001, 100)}, invoice.Open, invoice.Open, 0, 100, invoice.Late},
		{"completed late", payments{paid(1, 1500, 60), paid(2, 2001, 40)}, invoice.Open, invoice.Open, 0, 100, invoice.Late},
		{"once more", payments{paid(1, 1500, 100), paid(2, 1600, 100)}, invoice.Open, invoice.Paid, 1, 200, invoice.Duplicate},
		{"once more, late", payments{paid(1, 1500, 100), paid(2, 2600, 100)}, invoice.Open, invoice.Paid, 1, 200, invoice.Duplicate},
		{"duplicate outweighs overpaid", payments{paid(1, 1500, 2000), paid(2, 1600, 1)}, invoice.Open, invoice.Paid, 1, 2001, invoice.Duplicate},
		{"late on an expired one", payments{paid(1, 2500, 100)}, invoice.Expired, invoice.Expired, 0, 100, invoice.Late},
		{"underpaid and expired", payments{paid(1, 1500, 99)}, invoice.Expired, invoice.Expired, 0, 99, invoice.Underpaid},
		{"in time, but known when it had expired", payments{paid(1, 1500, 100)}, invoice.Expired, invoice.Expired, 0, 100, invoice.Late},
		{"in time and once more, when it had expired", payments{paid(1, 1500, 100), paid(2, 1600, 107)}, invoice.Expired, invoice.Expired, 0, 207, invoice.Late},
		{"pending", payments{change(paid(1, 1500, 100), func(p *invoice.Payment) { p.Status = invoice.Pending })}, invoice.Open, invoice.Open, 0, 0, ""},
		{"orphaned", payments{change(paid(1, 1500, 100), func(p *invoice.Payment) { p.Status = invoice.Orphaned })}, invoice.Open, invoice.Open, 0, 0, ""},
		{"another's", payments{change(paid(1, 1500, 100), func(p *invoice.Payment) { p.InvoiceID = "b" })}, invoice.Open, invoice.Open, 0, 0, ""},
		{"unattributed", payments{change(paid(1, 1500, 100), func(p *invoice.Payment) { p.InvoiceID = "" })}, invoice.Open, invoice.Open, 0, 0, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inv := openInvoice("a")
			inv.Status = test.before
			got := inv.Settle(test.payments)
			want := inv
			want.Sums = got.Sums
			want.Status, want.AmountPaid, want.Exception = test.after, invoice.NewAmount(test.total), test.exception
			if test.settledBy > 0 {
				p := test.payments[slices.IndexFunc(test.payments, func(p invoice.Payment) bool { return p.BlockNumber == test.settledBy })]
				want.SettledTx, want.SettledAt = p.TxHash, p.BlockTime
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("settled\n%+v, want\n%+v", got, want)
			}
		})
	}
}

// TestSettleWithTolerance accepts 95 of 100 as enough.
func TestSettleWithTolerance(t *testing.T) {
	t.Parallel()
	type payments = []invoice.Payment
	for name, test := range map[string]struct {
		payments  payments
		before    invoice.Status
		settledBy byte // last byte of the transaction
		exception invoice.Exception
	}{
		"one less than enough":       {payments{paid(1, 1500, 94)}, invoice.Open, 0, invoice.Underpaid},
		"enough":                     {payments{paid(1, 1500, 95)}, invoice.Open, 1, invoice.Underpaid},
		"one short":                  {payments{paid(1, 1500, 99)}, invoice.Open, 1, invoice.Underpaid},
		"the amount":                 {payments{paid(1, 1500, 100)}, invoice.Open, 1, ""},
		"enough in two parts":        {payments{paid(1, 1500, 50), paid(2, 1500, 46)}, invoice.Open, 2, invoice.Underpaid},
		"enough, then the rest":      {payments{paid(1, 1500, 95), paid(2, 1600, 5)}, invoice.Open, 1, ""},
		"enough, then too much":      {payments{paid(1, 1500, 95), paid(2, 1600, 1013)}, invoice.Open, 1, invoice.Overpaid},
		"all, and a unit more":       {payments{paid(1, 1500, 95), paid(2, 1600, 5), paid(3, 1600, 1)}, invoice.Open, 1, invoice.Duplicate},
		"enough, then the rest late": {payments{paid(1, 1500, 95), paid(2, 2001, 5)}, invoice.Open, 1, invoice.Duplicate},
		"enough, late":               {payments{paid(1, 2001, 95)}, invoice.Open, 0, invoice.Late},
		"enough, known too late":     {payments{paid(1, 1500, 95)}, invoice.Expired, 0, invoice.Late},
	} {
		inv := openInvoice("a")
		inv.Tolerance, inv.Status = invoice.NewAmount(5), test.before
		got := inv.Settle(test.payments)
		if got.Exception != test.exception || got.SettledTx[31] != test.settledBy || (got.Status == invoice.Paid) != (test.settledBy != 0) {
			t.Errorf("%s: %s by %d, %q", name, got.Status, got.SettledTx[31], got.Exception)
		}
		if again := got.Settle(test.payments); !reflect.DeepEqual(again, got) {
			t.Errorf("%s, settled again: %+v", name, again)
		}
	}
}

// TestSettleSaturatesSums checks that a token that mints too much cannot make a sum wrap around.
func TestSettleSaturatesSums(t *testing.T) {
	t.Parallel()
	inv := openInvoice("a")
	one, two := paid(1, 1500, 0), paid(2, 1500, 0)
	one.Amount, two.Amount = invoice.MaxAmount, invoice.MaxAmount
	if got := inv.Settle([]invoice.Payment{one, two}); got.AmountPaid != invoice.MaxAmount || got.Status != invoice.Paid {
		t.Errorf("two of the largest amount make %s, %s", got.Status, got.AmountPaid)
	}
}

// histories draws payments at different positions: of this invoice and of another, in time and late, final and not.
func histories() *rapid.Generator[[]invoice.Payment] {
	return rapid.Custom(func(t *rapid.T) []invoice.Payment {
		n := rapid.IntRange(0, 6).Draw(t, "payments")
		ps := make([]invoice.Payment, n)
		blockTime := int64(1990)
		for i := range ps {
			blockTime += rapid.Int64Range(0, 8).Draw(t, "seconds")
			ps[i] = paid(uint64(i/2+1), blockTime, rapid.SampledFrom([]uint64{1, 40, 50, 60, 99, 100, 107, 108, 1099, 1100, 3000}).Draw(t, "amount"))
			ps[i].LogIndex = i % 2
			ps[i].TxHash[30] = byte(i)
			ps[i].Status = rapid.SampledFrom([]invoice.PaymentStatus{invoice.Confirmed, invoice.Confirmed, invoice.Confirmed, invoice.Pending, invoice.Orphaned}).Draw(t, "status")
			ps[i].InvoiceID = rapid.SampledFrom([]string{"a", "a", "a", "b"}).Draw(t, "invoice")
			if rapid.Bool().Draw(t, "by registry") {
				ps[i].Method = invoice.ByRegistry
			}
		}
		return ps
	})
}

// TestSettleFollowsTheChain checks that an invoice is paid if and only if the payments mined in time add up, and that
// it is settled by the transfer that completes the amount.
func TestSettleFollowsTheChain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		inv := openInvoice("a")
		ps := histories().Draw(t, "history")
		got := inv.Settle(ps)

		var total, inTime, atCompletion uint64
		var completer *invoice.Payment
		after, late := 0, 0
		for _, p := range ps { // drawn in the order of the chain
			if p.Status != invoice.Confirmed || p.InvoiceID != "a" {
				continue
			}
			word := p.Amount.Bytes()
			amount := uint64(word[30])<<8 | uint64(word[31])
			total += amount
			switch {
			case completer != nil:
				after++
			case p.BlockTime.Unix() > 2000:
				late++
			default:
				if inTime += amount; inTime >= 100 {
					completer, atCompletion = &p, inTime
				}
			}
		}
		if got.AmountPaid != invoice.NewAmount(total) {
			t.Fatalf("amountPaid %s, want %d", got.AmountPaid, total)
		}
		if (got.Status == invoice.Paid) != (completer != nil) {
			t.Fatalf("status %s, want paid: %t", got.Status, completer != nil)
		}
		if completer != nil && (got.SettledTx != completer.TxHash || got.SettledAt != completer.BlockTime) {
			t.Fatalf("settled by %s at %s, want %s at %s", got.SettledTx, got.SettledAt, completer.TxHash, completer.BlockTime)
		}
		if completer == nil && (!got.SettledTx.IsZero() || !got.SettledAt.IsZero()) {
			t.Fatalf("settled by %s at %s without being paid", got.SettledTx, got.SettledAt)
		}
		want := invoice.Exception("")
		switch {
		case after > 0:
			want = invoice.Duplicate
		case atCompletion > 1099:
			want = invoice.Overpaid
		case late > 0:
			want = invoice.Late
		case completer == nil && total > 0:
			want = invoice.Underpaid
		}
		if got.Exception != want {
			t.Fatalf("exception %q, want %q", got.Exception, want)
		}
	})
}

func TestSettleIsOrderIndependentAndIdempotent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		inv := openInvoice("a")
		ps := histories().Draw(t, "history")
		told := slices.Clone(ps)
		once := inv.Settle(ps)
		if !reflect.DeepEqual(ps, told) {
			t.Fatal("Settle changed the order of what it was given")
		}
		if again := once.Settle(ps); !reflect.DeepEqual(again, once) {
			t.Fatalf("settled again\n%+v, want\n%+v", again, once)
		}
		if other := inv.Settle(rapid.Permutation(ps).Draw(t, "order")); !reflect.DeepEqual(other, once) {
			t.Fatalf("in another order\n%+v, want\n%+v", other, once)
		}
		// Blocks are confirmed from below, so payments are added at the end.
		step := inv
		for n := range ps {
			step = step.Settle(ps[:n+1])
		}
		if len(ps) > 0 && !reflect.DeepEqual(step, once) {
			t.Fatalf("step by step\n%+v, want\n%+v", step, once)
		}
	})
}

// TestStates settles and refunds invoices in every status, and requires that States has the state of each.
func TestStates(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		check := func(inv invoice.Invoice) {
			item, _ := invoice.ItemOf(inv)
			if got := (invoice.State{Status: inv.Status, Exception: inv.Exception, Item: item}); !slices.Contains(invoice.States(), got) {
				t.Fatalf("States lacks %+v", got)
			}
		}
		inv := openInvoice("a")
		inv.Tolerance = invoice.NewAmount(rapid.Uint64Range(0, 50).Draw(t, "tolerance"))
		inv.Status = rapid.SampledFrom([]invoice.Status{invoice.Open, invoice.Expired, invoice.Void}).Draw(t, "status")
		check(inv)
		payments := histories().Draw(t, "history")
		for n := range payments {
			inv = inv.Settle(payments[:n+1])
			check(inv)
			var refund invoice.Refund
			refund.Amount = invoice.NewAmount(rapid.Uint64Range(1, 200).Draw(t, "refund"))
			check(inv.WithRefunds(refund))
		}
		if expired, ok := inv.Expire(invoice.Unix(1 << 40)); ok {
			check(expired.Settle(payments))
		}
	})
}

func TestSettleNeverLeavesAFinalState(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		inv := openInvoice("a")
		inv.Status = rapid.SampledFrom([]invoice.Status{invoice.Drafted, invoice.Paid, invoice.Expired, invoice.Void}).Draw(t, "status")
		if inv.Status == invoice.Paid {
			inv.SettledTx, inv.SettledAt = invoice.Hash{1}, invoice.Unix(1234)
		}
		got := inv.Settle(histories().Draw(t, "history"))
		if got.Status != inv.Status || got.SettledTx != inv.SettledTx || got.SettledAt != inv.SettledAt {
			t.Fatalf("from %s (%s) to %s (%s)", inv.Status, inv.SettledTx, got.Status, got.SettledTx)
		}
	})
}

func TestExpire(t *testing.T) {
	t.Parallel()
	for _, status := range invoice.Statuses {
		for _, confirmed := range []int64{0, 1999, 2000, 2001, 1 << 40} {
			inv := openInvoice("a")
			inv.Status = status
			got, ok := inv.Expire(invoice.Unix(confirmed))
			want := status == invoice.Open && confirmed > 2000
			if ok != want {
				t.Errorf("a %s invoice at %d: expired %t, want %t", status, confirmed, ok, want)
			}
			if want {
				inv.Status = invoice.Expired
			}
			if !reflect.DeepEqual(got, inv) {
				t.Errorf("a %s invoice at %d became %+v", status, confirmed, got)
			}
		}
	}
}

func TestCovered(t *testing.T) {
	t.Parallel()
	pending := paid(2, 2000, 60)
	pending.Status = invoice.Pending
	orphaned := paid(2, 1500, 60)
	orphaned.Status = invoice.Orphaned
	other := paid(2, 1500, 60)
	other.InvoiceID = "b"
	for name, test := range map[string]struct {
		second invoice.Payment
		want   bool
	}{
		"pending in the last second": {pending, true},
		"confirmed":                  {paid(2, 1500, 60), true},
		"one short":                  {paid(2, 1500, 59), false},
		"a second late":              {paid(2, 2001, 60), false},
		"orphaned":                   {orphaned, false},
		"another's":                  {other, false},
	} {
		if got := openInvoice("a").Recount([]invoice.Payment{paid(1, 1500, 40), test.second}).Covered(); got != test.want {
			t.Errorf("%s: covered %t, want %t", name, got, test.want)
		}
	}
	tolerant := openInvoice("a")
	tolerant.Tolerance = invoice.NewAmount(5)
	for amount, want := range map[uint64]bool{94: false, 95: true} {
		if got := tolerant.Recount([]invoice.Payment{paid(1, 1500, amount)}).Covered(); got != want {
			t.Errorf("with a tolerance of 5, %d cover 100: %t, want %t", amount, got, want)
		}
	}
	if openInvoice("a").Covered() {
		t.Error("an invoice without payments is covered")
	}
}

func TestCloseIntent(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status     invoice.Status
		registered bool
		want       bool
	}{
		{invoice.Drafted, false, false},
		{invoice.Open, false, false},
		{invoice.Expired, false, true},
		{invoice.Expired, true, true},
		{invoice.Void, false, true},
		{invoice.Paid, false, true},
		{invoice.Paid, true, false},
		{"unheard of", false, false},
	} {
		inv := openInvoice("a")
		inv.Status = test.status
		if got := inv.CloseIntent(test.registered); got != test.want {
			t.Errorf("a %s invoice, paid through the registry %t: close %t, want %t", test.status, test.registered, got, test.want)
		}
	}
}

func TestWithRefunds(t *testing.T) {
	t.Parallel()
	inv := openInvoice("a")
	inv.Status, inv.AmountRefunded = invoice.Paid, invoice.NewAmount(1)
	got := inv.WithRefunds(invoice.Refund{Transfer: transfer(30)}, invoice.Refund{Transfer: transfer(12)})
	if got.AmountRefunded != invoice.NewAmount(43) || got.Status != invoice.Paid {
		t.Errorf("%s refunded, %s; want 43, paid", got.AmountRefunded, got.Status)
	}
	if got := got.WithRefunds(invoice.Refund{Transfer: invoice.Transfer{Amount: invoice.MaxAmount}}); got.AmountRefunded != invoice.MaxAmount {
		t.Errorf("refunds of more than there is add up to %s", got.AmountRefunded)
	}
}

func TestSameMovement(t *testing.T) {
	t.Parallel()
	a := transfer(100)
	moved := a
	moved.BlockNumber, moved.BlockTime, moved.LogIndex, moved.BlockHash = 77, invoice.Unix(9999), 3, invoice.Hash{1}
	if !a.SameMovement(moved) {
		t.Error("the same money in another block is another movement")
	}
	for name, change := range map[string]func(*invoice.Transfer){
		"token":  func(m *invoice.Transfer) { m.Token = invoice.Address{1} },
		"from":   func(m *invoice.Transfer) { m.From = invoice.Address{1} },
		"to":     func(m *invoice.Transfer) { m.To = invoice.Address{1} },
		"amount": func(m *invoice.Transfer) { m.Amount = invoice.NewAmount(101) },
	} {
		b := a
		change(&b)
		if a.SameMovement(b) {
			t.Errorf("another %s is the same movement", name)
		}
	}
}

// TestEndedInLostPast has an open invoice that ended in a past that the database has lost: no payment above that block
// is in time, it asks for no authorization, and it becomes void as of that block.
func TestEndedInLostPast(t *testing.T) {
	t.Parallel()
	end := invoice.Unix(1000)
	inv := invoice.Invoice{Terms: invoice.Terms{Amount: invoice.NewAmount(5), ExpiresAt: end}, Status: invoice.Open, ClosedBlock: 7}
	at := func(block uint64) invoice.Position { return invoice.Position{BlockNumber: block, BlockTime: end} }
	if !inv.EndedInLostPast() || inv.IsLate(at(7)) || !inv.IsLate(at(8)) || !inv.Due().IsZero() {
		t.Errorf("block 7 is late: %v, block 8: %v, %s is due", inv.IsLate(at(7)), inv.IsLate(at(8)), inv.Due())
	}
	if voided, err := inv.Cancel(9); err != nil || voided.ClosedBlock != 7 || voided.EndedInLostPast() || !voided.IsLate(at(8)) {
		t.Errorf("canceled it is %+v, %v", voided, err)
	}
	inv.ClosedBlock = 0
	if inv.EndedInLostPast() || inv.IsLate(at(8)) || inv.Due() != inv.Amount {
		t.Errorf("an open invoice is %+v, late %v, %s due", inv, inv.IsLate(at(8)), inv.Due())
	}
}

// TestLateForAVoidInvoice checks from which block on a payment of a void invoice is late: above the
// newest block that was read when the invoice became void.
func TestLateForAVoidInvoice(t *testing.T) {
	t.Parallel()
	inv := invoice.Invoice{Status: invoice.Void, ClosedBlock: 100, Terms: invoice.Terms{ExpiresAt: invoice.Unix(2000)}}
	for block, want := range map[uint64]bool{99: false, 100: false, 101: true} {
		if got := inv.IsLate(invoice.Position{BlockNumber: block, BlockTime: invoice.Unix(1000)}); got != want {
			t.Errorf("in block %d it is late: %t, want %t", block, got, want)
		}
	}
	inv.Status = invoice.Paid
	if inv.IsLate(invoice.Position{BlockNumber: 101, BlockTime: invoice.Unix(1000)}) {
		t.Error("a payment of a paid invoice is late above its block")
	}
}

// TestOverpaidByTheSum checks that the sum of the payments decides whether an invoice is overpaid, and
// not the last payment.
func TestOverpaidByTheSum(t *testing.T) {
	t.Parallel()
	n := invoice.NewAmount
	inv := invoice.Invoice{ID: "a", Status: invoice.Open, Terms: invoice.Terms{Amount: n(1_000_000), ExpiresAt: invoice.Unix(2000)}}
	for name, test := range map[string]struct {
		first, second uint64
		exception     invoice.Exception
		overpaid      uint64
	}{
		"a small payment exceeds it":        {999_999, 20_000, invoice.Overpaid, 19_999},
		"a payment below the amount does":   {500_000, 600_000, invoice.Overpaid, 100_000},
		"by the largest suffix":             {500_000, 500_999, "", 0},
		"by one more":                       {500_000, 501_000, invoice.Overpaid, 1_000},
		"a payment of nearly all completes": {1_000, 999_000, "", 0},
	} {
		payments := []invoice.Payment{paid(1, 1500, test.first), paid(2, 1600, test.second)}
		got := inv.Settle(payments)
		if got.Status != invoice.Paid || got.Exception != test.exception {
			t.Errorf("%s: it is %s, %q, want %q", name, got.Status, got.Exception, test.exception)
		}
		if p := got.Portion(payments[1], n(test.first)); p.Overpaid != n(test.overpaid) || (test.overpaid > 0) != p.Suffix.IsZero() && test.first+test.second > 1_000_000 {
			t.Errorf("%s: of the second %s is too much, and %s a suffix", name, p.Overpaid, p.Suffix)
		}
	}
}
