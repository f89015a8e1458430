package invoice_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
)

func TestAttributeRefund(t *testing.T) {
	t.Parallel()
	payment := func(id string, block uint64, amount uint64) invoice.Payment {
		m := transfer(amount)
		m.BlockNumber = block
		return invoice.Payment{Transfer: m, ID: id, InvoiceID: "inv_" + id, Status: invoice.Confirmed}
	}
	back := func(amount uint64) invoice.Transfer {
		m := transfer(amount)
		m.From, m.To = merchant, payer
		m.BlockNumber, m.LogIndex = 6, 9
		return m
	}
	change := func(p invoice.Payment, by func(*invoice.Payment)) invoice.Payment { by(&p); return p }
	toItself := func(m invoice.Transfer) invoice.Transfer { m.From, m.To = merchant, merchant; return m }
	nobodys := func(p invoice.Payment) invoice.Payment { return p.WithAttribution(invoice.Attribution{}) }
	old, recent := payment("old", 5, 100), payment("recent", 6, 100)
	type payments = []invoice.Payment
	for _, test := range []struct {
		name     string
		refund   invoice.Transfer
		payments payments
		returned map[string]uint64 // of payments that were partly sent back
		tagged   string
		want     string
		exact    bool
	}{
		{"whole", back(100), payments{old}, nil, "", "old", true},
		{"partial", back(1), payments{old}, nil, "", "old", false},
		{"one too much", back(101), payments{old}, nil, "", "", false},
		{"the rest", back(60), payments{old}, map[string]uint64{"old": 40}, "", "old", true},
		{"more than the rest", back(61), payments{old}, map[string]uint64{"old": 40}, "", "", false},
		{"nothing left", back(1), payments{old}, map[string]uint64{"old": 100}, "", "", false},
		{"of nothing", back(0), payments{old}, nil, "", "", false},
		{"nobody paid", back(100), nil, nil, "", "", false},
		{"the newest", back(100), payments{old, recent}, nil, "", "recent", true},
		{"the newest, listed first", back(100), payments{recent, old}, nil, "", "recent", true},
		{"the one whose rest it is", back(60), payments{old, recent}, map[string]uint64{"old": 40}, "", "old", true},
		{"the tagged one before the newest", back(100), payments{old, recent}, nil, "inv_old", "old", true},
		{"the tagged one before the rest", back(60), payments{old, recent}, map[string]uint64{"old": 40}, "inv_recent", "recent", true},
		{"a tag does not make it fit, nor another", back(100), payments{old, recent}, map[string]uint64{"old": 1}, "inv_old", "", false},
		{"the tagged invoice has no payment", back(100), payments{old, recent}, nil, "inv_other", "", false},
		{"an unattributed one is not tagged", back(100), payments{nobodys(old)}, nil, "inv_old", "", false},
		{"an orphaned payment", back(100), payments{change(old, func(p *invoice.Payment) { p.Status = invoice.Orphaned })}, nil, "", "", false},
		{"a pending payment", back(100), payments{change(old, func(p *invoice.Payment) { p.Status = invoice.Pending })}, nil, "", "old", true},
		{"an unattributed payment", back(100), payments{change(old, func(p *invoice.Payment) { p.InvoiceID = "" })}, nil, "", "old", true},
		{"an unattributed one whose rest it is", back(100), payments{payment("large", 5, 900), nobodys(old)}, nil, "", "old", true},
		{"an unattributed one after it, the newest", back(100), payments{old, nobodys(recent)}, nil, "", "recent", true},
		{"a part: the attributed one before the newest", back(70), payments{old, nobodys(recent)}, nil, "", "old", false},
		{"a part: the unattributed one with room", back(70), payments{old, nobodys(recent)}, map[string]uint64{"old": 50}, "", "recent", false},
		{"a part of the tagged one", back(70), payments{old, recent}, nil, "inv_old", "old", true},
		{"another chain", back(100), payments{change(old, func(p *invoice.Payment) { p.ChainKey = "base-sepolia" })}, nil, "", "", false},
		{"another token", back(100), payments{change(old, func(p *invoice.Payment) { p.Token = invoice.Address{1} })}, nil, "", "", false},
		{"a payment that was mined later", back(100), payments{change(recent, func(p *invoice.Payment) { p.LogIndex = 10 })}, nil, "", "", false},
		{"another payer", back(100), payments{change(old, func(p *invoice.Payment) { p.From = invoice.Address{1} })}, nil, "", "", false},
		{"another receiver", back(100), payments{change(old, func(p *invoice.Payment) { p.To = invoice.Address{1} })}, nil, "", "", false},
		{"the payment itself", transfer(100), payments{old}, nil, "", "", false},
		{"from the address to itself", toItself(back(100)), payments{change(old, func(p *invoice.Payment) { p.Transfer = toItself(p.Transfer) })}, nil, "", "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var candidates []invoice.Refundable
			for _, p := range test.payments {
				candidates = append(candidates, invoice.Refundable{Payment: &p, Left: p.Amount.Minus(invoice.NewAmount(test.returned[p.ID]))})
			}
			slices.SortFunc(candidates, func(a, b invoice.Refundable) int { return b.Compare(a.Position) })
			got, ok := invoice.AttributeRefund(test.refund, candidates, test.tagged)
			if ok != (test.want != "") || got.Payment.ID != test.want || got.Exact != test.exact {
				t.Errorf("pays back %q (exactly: %t), %t, want %q (exactly: %t)", got.Payment.ID, got.Exact, ok, test.want, test.exact)
			}
		})
	}
}

func TestRefundTag(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		ms := rapid.Int64Range(0, 1<<48-1).Draw(r, "ms")
		random := rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(r, "random")
		tx := invoice.Hash(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(r, "tx"))
		payment := invoice.TransferID(invoice.PrefixPayment, "base", tx, rapid.IntRange(0, 9).Draw(r, "ordinal"))
		refund := invoice.NewIDs(func() time.Time { return time.UnixMilli(ms) }, bytes.NewReader(random)).New(invoice.PrefixRefund)
		tag, err := invoice.RefundTag(payment, refund)
		expect.OK(r, err)
		gotPayment, gotRefund, at, ok := invoice.ParseRefundTag(tag)
		if gotPayment != payment || gotRefund != refund || at.UnixMilli() != ms || !ok {
			r.Errorf("%s names %s, %s of %s, %t; want %s, %s", tag, gotPayment, gotRefund, at, ok, payment, refund)
		}
	})
	for _, ids := range [][2]string{{"", ""}, {"pay_1", "ref_1"}, {invoice.FirstID(invoice.PrefixRefund, time.Unix(1, 0)), invoice.FirstID(invoice.PrefixPayment, time.Unix(1, 0))}} {
		if tag, err := invoice.RefundTag(ids[0], ids[1]); err == nil || !tag.IsZero() {
			t.Errorf("%q has the tag %s", ids, tag)
		}
	}
}

// FuzzParseRefundTag requires that the identifiers read from a tag give the same tag again.
func FuzzParseRefundTag(f *testing.F) {
	f.Add(make([]byte, 32))
	f.Add(bytes.Repeat([]byte{0x77}, 32))
	f.Add(bytes.Repeat([]byte{0x87, 0x78}, 16))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) != 32 {
			return
		}
		tag := invoice.Hash(b)
		payment, refund, _, ok := invoice.ParseRefundTag(tag)
		if !ok {
			return
		}
		if again, err := invoice.RefundTag(payment, refund); err != nil || again != tag {
			t.Errorf("%s names %s and %s, whose tag is %s, %v", tag, payment, refund, again, err)
		}
	})
}

// preparedRefund returns a pending refund of 600 with the tag n.
func preparedRefund(n byte) invoice.RefundRecord {
	return invoice.RefundRecord{
		ID: "ref_" + string('0'+n), ChainKey: "base", Token: invoice.Address{1}, From: invoice.Address{2}, Payer: invoice.Address{3}, To: invoice.Address{3},
		Left: invoice.NewAmount(1000), Amount: invoice.NewAmount(600), Status: invoice.RefundPending, Tag: invoice.Hash{n}, ExpiresAt: time.Unix(1000, 0),
	}
}

// sentBy returns the refund with a transfer of an amount in a state.
func sentBy(r invoice.RefundRecord, id string, amount uint64, status invoice.PaymentStatus) invoice.RefundRecord {
	r.Transfer = invoice.Refund{ID: id, Status: status, Transfer: invoice.Transfer{TxHash: invoice.Hash{9}, Amount: invoice.NewAmount(amount)}}
	return r
}

// TestTwoEqualRefunds: two refunds have the same recipient and amount. A second transfer without a tag
// pays the refund that no other transfer pays, so that neither refund can be sent again.
func TestTwoEqualRefunds(t *testing.T) {
	t.Parallel()
	first, second := sentBy(preparedRefund(1), "ref_t1", 600, invoice.Pending), preparedRefund(2)
	sent := invoice.Transfer{ChainKey: "base", Token: first.Token, From: first.From, To: first.To, Amount: first.Amount}
	for id, want := range map[string]string{"ref_t1": first.ID, "ref_t2": second.ID} {
		got, named, ok := invoice.PreparedFor(sent, id, []invoice.RefundRecord{first, second}, "")
		if !ok || named || got.ID != want {
			t.Errorf("the transfer %s pays %q, named %t, found %t; want %s", id, got.ID, named, ok, want)
		}
	}
	unsent, submitted := preparedRefund(1), second
	submitted.SubmittedTx = invoice.Hash{9}
	for paid, want := range map[string]string{"": second.ID, first.ID: first.ID, second.ID: second.ID} {
		for _, all := range [][]invoice.RefundRecord{{unsent, submitted}, {submitted, unsent}} {
			if got, _, ok := invoice.PreparedFor(sent, "ref_t4", all, paid); !ok || got.ID != want {
				t.Errorf("a transfer that pays %q and fits a submitted refund pays %s, want %s", paid, got.ID, want)
			}
		}
	}
	unsent.SubmittedTx, sent.TxHash = invoice.Hash{8}, submitted.SubmittedTx
	for paid, want := range map[string]string{"": second.ID, first.ID: first.ID} {
		if got, _, ok := invoice.PreparedFor(sent, "ref_t4", []invoice.RefundRecord{unsent, submitted}, paid); !ok || got.ID != want {
			t.Errorf("the submitted transaction of %s, which pays %q, pays %s, want %s", second.ID, paid, got.ID, want)
		}
	}
	if got, _, ok := invoice.PreparedFor(sent, "ref_t3", []invoice.RefundRecord{first, sentBy(second, "ref_t2", 600, invoice.Confirmed)}, ""); ok {
		t.Errorf("a third transfer pays %s, which another one pays", got.ID)
	}
}

// TestFits changes each part of an untagged transfer, and of the refund, that decides whether it pays the refund.
func TestFits(t *testing.T) {
	t.Parallel()
	fits := preparedRefund(1)
	sent := invoice.Transfer{ChainKey: "base", Token: fits.Token, From: fits.From, To: fits.To, Amount: fits.Amount}
	expect.Equal(t, fits.Fits(sent), true, "the transfer fits:")
	for name, change := range map[string]func(r *invoice.RefundRecord, t *invoice.Transfer){
		"not prepared":   func(r *invoice.RefundRecord, _ *invoice.Transfer) { r.Tag = invoice.Hash{} },
		"canceled":       func(r *invoice.RefundRecord, _ *invoice.Transfer) { r.Status = invoice.RefundCanceled },
		"another chain":  func(_ *invoice.RefundRecord, t *invoice.Transfer) { t.ChainKey = "arc" },
		"another token":  func(_ *invoice.RefundRecord, t *invoice.Transfer) { t.Token[0]++ },
		"another sender": func(_ *invoice.RefundRecord, t *invoice.Transfer) { t.From[0]++ },
		"another payee":  func(_ *invoice.RefundRecord, t *invoice.Transfer) { t.To[0]++ },
		"less":           func(_ *invoice.RefundRecord, t *invoice.Transfer) { t.Amount = t.Amount.Minus(invoice.NewAmount(1)) },
	} {
		r, other := fits, sent
		change(&r, &other)
		expect.Equal(t, r.Fits(other), false, "%s, it fits:", name)
	}
}

// TestWouldBeSent: a transfer to an address that a person approved may have been mined before, when it was not pending.
func TestWouldBeSent(t *testing.T) {
	r := preparedRefund(1)
	r.PaymentStatus, r.Left = invoice.Confirmed, r.Amount
	claimed := r
	claimed.ClaimHash = invoice.Hash{1}
	signed := claimed
	signed.Signature = "0x01"
	for what, test := range map[string]struct {
		r    invoice.RefundRecord
		want bool
	}{"prepared": {r, true}, "signed by the payer": {signed, true}, "approved by a person": {claimed, false}} {
		if got := test.r.WouldBeSent(); got != test.want {
			t.Errorf("%s: %t, want %t", what, got, test.want)
		}
	}
}

// TestReserved checks how much refunds reserve of their payment, and whether they can be sent.
func TestReserved(t *testing.T) {
	t.Parallel()
	canceled := func(r invoice.RefundRecord) invoice.RefundRecord {
		r.CanceledAt = time.Unix(1, 0)
		if !r.Sent() {
			r.Status = invoice.RefundCanceled
		}
		return r
	}
	awaited := func(r invoice.RefundRecord) invoice.RefundRecord {
		r.SubmittedTx, r.MayReturn = r.Transfer.TxHash, true
		return r
	}
	submitted := preparedRefund(1)
	submitted.SubmittedTx = invoice.Hash{8}
	byHand := invoice.RefundRecord{Status: invoice.RefundOrphaned, Left: invoice.NewAmount(1000)}
	recorded := func(r invoice.RefundRecord, left uint64) invoice.RefundRecord {
		r.SubmittedTx, r.Left = invoice.Hash{8}, invoice.NewAmount(left)
		return r
	}
	beside := func(underway uint64) invoice.RefundRecord {
		r := preparedRefund(1)
		r.Underway = invoice.NewAmount(underway)
		return r
	}
	const early, late = 999, 1000
	for name, c := range map[string]struct {
		refund  invoice.RefundRecord
		at      int64
		want    uint64
		canSend bool
	}{
		"prepared":                                   {preparedRefund(1), early, 600, true},
		"expired, not stored as expired":             {preparedRefund(1), late, 600, false},
		"submitted":                                  {submitted, early, 600, true},
		"submitted, after it could be sent":          {submitted, late, 600, false},
		"canceled":                                   {canceled(preparedRefund(1)), early, 0, false},
		"in a block":                                 {sentBy(preparedRefund(1), "t", 600, invoice.Pending), early, 0, false},
		"in a block, less":                           {sentBy(preparedRefund(1), "t", 250, invoice.Pending), early, 350, false},
		"in a block, less, canceled before":          {canceled(sentBy(preparedRefund(1), "t", 250, invoice.Pending)), early, 0, false},
		"dropped, and nobody awaits it":              {sentBy(preparedRefund(1), "t", 600, invoice.Orphaned), early, 600, true},
		"dropped":                                    {awaited(sentBy(preparedRefund(1), "t", 600, invoice.Orphaned)), early, 600, false},
		"dropped, less":                              {awaited(sentBy(preparedRefund(1), "t", 250, invoice.Orphaned)), early, 600, false},
		"dropped, more":                              {awaited(sentBy(preparedRefund(1), "t", 700, invoice.Orphaned)), early, 700, false},
		"dropped, after it could be sent":            {awaited(sentBy(preparedRefund(1), "t", 600, invoice.Orphaned)), late, 600, false},
		"dropped, canceled before":                   {awaited(canceled(sentBy(preparedRefund(1), "t", 250, invoice.Orphaned))), early, 250, false},
		"by hand, dropped":                           {awaited(sentBy(byHand, "t", 300, invoice.Orphaned)), early, 300, false},
		"beside one that leaves enough":              {beside(400), early, 600, true},
		"beside one that leaves too little":          {beside(401), early, 600, false},
		"beside one that leaves nothing":             {beside(2000), early, 600, false},
		"recorded, canceled, after it could be sent": {recorded(canceled(preparedRefund(1)), 600), early, 600, false},
		"recorded, canceled, too little, after it could be sent": {recorded(canceled(preparedRefund(1)), 599), early, 0, false},
		"recorded instead of what was dropped by hand":           {recorded(sentBy(byHand, "t", 300, invoice.Orphaned), 300), early, 300, false},
		"by hand, dropped, nobody awaits it":                     {sentBy(byHand, "t", 300, invoice.Orphaned), early, 0, false},
	} {
		now := time.Unix(c.at, 0)
		if got := c.refund.Reserved(); got != invoice.NewAmount(c.want) || c.refund.CanBeSent(now) != c.canSend {
			t.Errorf("%s: %s is reserved, can be sent: %t; want %d, %t", name, got, c.refund.CanBeSent(now), c.want, c.canSend)
		}
		warned := slices.Contains(c.refund.Warnings(now), invoice.WarnTransferDropped)
		if want := c.refund.MayReturn && c.refund.Prepared(); warned != want {
			t.Errorf("%s: a warning that it may be mined again: %t, want %t", name, warned, want)
		}
		exceeds := slices.Contains(c.refund.Warnings(now), invoice.WarnExceedsRemainder)
		if want := strings.HasPrefix(name, "beside") && !c.canSend; exceeds != want {
			t.Errorf("%s: a warning that too little is left: %t, want %t", name, exceeds, want)
		}
		late := slices.Contains(c.refund.Warnings(now), invoice.WarnNotMined)
		if want := strings.HasSuffix(name, "after it could be sent"); late != want || c.refund.StatusAt(now) == invoice.RefundExpired && late {
			t.Errorf("%s: it is %s, with a warning that it may be mined: %t, want %t", name, c.refund.StatusAt(now), late, want)
		}
	}
}

// TestReturning checks how much of a payment stops counting in each state of its invoice.
func TestReturning(t *testing.T) {
	t.Parallel()
	n := invoice.NewAmount
	open := invoice.Invoice{Status: invoice.Open, Terms: invoice.Terms{Amount: n(100), ExpiresAt: invoice.Unix(10)}}
	inTime := invoice.Payment{Transfer: invoice.Transfer{Amount: n(60), Position: invoice.Position{BlockTime: invoice.Unix(10)}}, Returned: n(20)}
	late := inTime
	late.BlockTime = invoice.Unix(11)
	for name, test := range map[string]struct {
		status            invoice.Status
		p                 invoice.Payment
		back, early, want uint64
	}{
		"open":                              {invoice.Open, inTime, 30, 0, 30},
		"open, all of it":                   {invoice.Open, inTime, 60, 0, 60},
		"open, more than it":                {invoice.Open, inTime, 61, 0, 60},
		"open, nothing any more":            {invoice.Open, inTime, 0, 0, 0},
		"open, late":                        {invoice.Open, late, 30, 0, 0},
		"paid, refunded afterwards":         {invoice.Paid, inTime, 60, 0, 20},
		"paid, refunded before":             {invoice.Paid, inTime, 60, 50, 50},
		"paid, refunded before, but late":   {invoice.Paid, late, 60, 50, 0},
		"paid, not sent back after all":     {invoice.Paid, inTime, 5, 0, 5},
		"expired, refunded afterwards":      {invoice.Expired, inTime, 60, 0, 20},
		"expired, not sent back after all":  {invoice.Expired, inTime, 0, 0, 0},
		"void, whatever is done afterwards": {invoice.Void, inTime, 60, 0, 20},
	} {
		inv := open
		inv.Status = test.status
		if got := inv.Returning(test.p, n(test.back), n(test.early)); got != n(test.want) {
			t.Errorf("%s: %s, want %d", name, got, test.want)
		}
	}
}

// TestRefundedEarly puts refunds before and after the end of an invoice over 100.
func TestRefundedEarly(t *testing.T) {
	t.Parallel()
	n := invoice.NewAmount
	at := func(block uint64) invoice.Position {
		return invoice.Position{BlockNumber: block, BlockTime: invoice.Unix(int64(block))}
	}
	pay := func(id string, block, amount uint64) invoice.Payment {
		return invoice.Payment{ID: id, InvoiceID: "inv", Status: invoice.Confirmed, Transfer: invoice.Transfer{Position: at(block), Amount: n(amount), TxHash: invoice.Hash{byte(block)}}}
	}
	for name, test := range map[string]struct {
		status   invoice.Status
		payments []invoice.Payment // the last one paid it; refunds are of the first
		refunds  map[uint64]uint64 // by block
		want     uint64
	}{
		"paid by another":              {invoice.Paid, []invoice.Payment{pay("a", 5, 60), pay("b", 9, 100)}, map[uint64]uint64{7: 20, 9: 30, 10: 5}, 50},
		"paid by both":                 {invoice.Paid, []invoice.Payment{pay("a", 5, 60), pay("b", 9, 50)}, map[uint64]uint64{7: 20}, 0},
		"paid by an earlier one":       {invoice.Paid, []invoice.Payment{pay("a", 5, 60), pay("c", 6, 40), pay("b", 9, 100)}, map[uint64]uint64{6: 0, 7: 60}, 0},
		"paid with what was left":      {invoice.Paid, []invoice.Payment{pay("a", 5, 60), pay("b", 9, 80)}, map[uint64]uint64{7: 40}, 40},
		"paid by it":                   {invoice.Paid, []invoice.Payment{pay("a", 5, 120)}, map[uint64]uint64{5: 20, 6: 10}, 20},
		"expired":                      {invoice.Expired, []invoice.Payment{pay("a", 5, 60)}, map[uint64]uint64{7: 20, 100: 5, 101: 30}, 25},
		"void above block 50":          {invoice.Void, []invoice.Payment{pay("a", 5, 60)}, map[uint64]uint64{50: 20, 51: 30}, 20},
		"open, where all of it counts": {invoice.Open, []invoice.Payment{pay("a", 5, 60)}, map[uint64]uint64{7: 20}, 0},
	} {
		inv := invoice.Invoice{ID: "inv", Status: test.status, ClosedBlock: 50, Terms: invoice.Terms{Amount: n(100), ExpiresAt: invoice.Unix(100)}}
		last := test.payments[len(test.payments)-1]
		inv.SettledTx, inv.SettledAt = last.TxHash, last.BlockTime
		if test.status == invoice.Open {
			inv.ClosedBlock = 0
		}
		var refunds []invoice.Refund
		for block, amount := range test.refunds {
			refunds = append(refunds, invoice.Refund{PaymentID: "a", Status: invoice.Confirmed, Transfer: invoice.Transfer{Position: at(block), Amount: n(amount)}})
		}
		refunds = append(refunds, invoice.Refund{PaymentID: "a", Status: invoice.Orphaned, Transfer: invoice.Transfer{Position: at(6), Amount: n(1)}})
		if got := inv.RefundedEarly(test.payments[0], refunds, test.payments); got != n(test.want) {
			t.Errorf("%s: %s, want %d", name, got, test.want)
		}
	}
}

// TestSettleWithoutReturned counts partly returned payments: the amount that settles the invoice, and the excess.
func TestSettleWithoutReturned(t *testing.T) {
	t.Parallel()
	n := invoice.NewAmount
	base := invoice.Invoice{ID: "inv", Status: invoice.Open, Terms: invoice.Terms{Amount: n(1_000_000), ExpiresAt: invoice.Unix(100)}}
	pay := func(block, amount, returned uint64) invoice.Payment {
		return invoice.Payment{
			Transfer:  invoice.Transfer{Position: invoice.Position{BlockNumber: block}, TxHash: invoice.Hash{byte(block)}, Amount: n(amount)},
			InvoiceID: "inv", Status: invoice.Confirmed, Returned: n(returned),
		}
	}
	for name, test := range map[string]struct {
		payments  []invoice.Payment
		status    invoice.Status
		exception invoice.Exception
		settled   byte
		surplus   uint64
		missing   uint64
	}{
		"the rest after all was returned":    {[]invoice.Payment{pay(1, 985_000, 985_000), pay(2, 15_000, 0)}, invoice.Open, invoice.Underpaid, 0, 0, 985_000},
		"all was returned":                   {[]invoice.Payment{pay(1, 985_000, 985_000)}, invoice.Open, "", 0, 0, 1_000_000},
		"the whole after a part returned":    {[]invoice.Payment{pay(1, 985_000, 400_000), pay(2, 415_000, 0)}, invoice.Paid, "", 2, 0, 0},
		"more than the whole after returned": {[]invoice.Payment{pay(1, 985_000, 985_000), pay(2, 1_100_000, 0)}, invoice.Paid, invoice.Overpaid, 2, 100_000, 0},
		"a second time":                      {[]invoice.Payment{pay(1, 985_000, 985_000), pay(2, 1_000_000, 0), pay(3, 500_000, 0)}, invoice.Paid, invoice.Duplicate, 2, 500_000, 0},
	} {
		running := base
		for _, p := range test.payments {
			running = running.WithPayment(p)
			var ok bool
			if running, ok = running.WithConfirmed(p); !ok {
				t.Errorf("%s: a payment in order has to be recounted", name)
			}
		}
		for how, got := range map[string]invoice.Invoice{"running": running, "recounted": base.Recount(test.payments)} {
			if got.Status != test.status || got.Exception != test.exception || got.SettledTx != (invoice.Hash{test.settled}) || got.Missing() != n(test.missing) {
				t.Errorf("%s, %s: it is %s, %q, settled by %x and lacks %s", name, how, got.Status, got.Exception, got.SettledTx[0], got.Missing())
			}
			if got.Status == invoice.Paid && got.Surplus() != n(test.surplus) {
				t.Errorf("%s, %s: the surplus is %s", name, how, got.Surplus())
			}
		}
	}
}

// TestChangeUse tries every act on a payment in every use. An empty use means that the act is refused, and the error
// must name the present use.
func TestChangeUse(t *testing.T) {
	t.Parallel()
	some, all := invoice.NewAmount(40), invoice.NewAmount(100)
	const undecided, counted, refunding, refunded, dismissed, attributing = invoice.UseUndecided, invoice.UseCounted, invoice.UseRefunding, invoice.UseRefunded, invoice.UseDismissed, invoice.UseAttributing
	type after map[invoice.UseAct]invoice.PaymentUse
	for name, c := range map[string]struct {
		facts invoice.UseFacts
		is    invoice.PaymentUse
		after after
	}{
		"new":             {invoice.UseFacts{}, undecided, after{invoice.ActAttribute: counted, invoice.ActRefund: refunding, invoice.ActDismiss: dismissed, invoice.ActAccept: undecided}},
		"partly refunded": {invoice.UseFacts{Refunded: some}, undecided, after{invoice.ActAttribute: counted, invoice.ActRefund: refunding, invoice.ActDismiss: dismissed, invoice.ActAccept: undecided}},
		"counted":         {invoice.UseFacts{Counted: true}, counted, after{invoice.ActRefund: refunding, invoice.ActAccept: counted}},
		"counted, partly refunded": {invoice.UseFacts{Counted: true, Refunded: some}, counted,
			after{invoice.ActRefund: refunding, invoice.ActAccept: counted}},
		"counted, waived":               {invoice.UseFacts{Counted: true, Accepted: true}, counted, after{invoice.ActAccept: counted}},
		"prepared":                      {invoice.UseFacts{Reserved: some}, refunding, after{invoice.ActRefund: refunding}},
		"in a block":                    {invoice.UseFacts{Pending: all}, refunding, after{invoice.ActRefund: refunding}},
		"counted, in a block":           {invoice.UseFacts{Counted: true, Pending: some, Refunded: some}, refunding, after{invoice.ActRefund: refunding}},
		"refunded":                      {invoice.UseFacts{Refunded: all}, refunded, after{invoice.ActAccept: refunded}},
		"counted, refunded":             {invoice.UseFacts{Counted: true, Refunded: all}, refunded, after{invoice.ActAccept: refunded}},
		"dismissed":                     {invoice.UseFacts{Dismissed: true}, dismissed, after{invoice.ActDismiss: dismissed, invoice.ActAccept: dismissed}},
		"attributing":                   {invoice.UseFacts{Attributing: true}, attributing, after{invoice.ActAccept: attributing}},
		"attributing, in a block":       {invoice.UseFacts{Attributing: true, Pending: some}, refunding, after{invoice.ActRefund: refunding}},
		"attributing, counted":          {invoice.UseFacts{Attributing: true, Counted: true}, counted, after{invoice.ActRefund: refunding, invoice.ActAccept: counted}},
		"dismissed, and sent back":      {invoice.UseFacts{Dismissed: true, Refunded: all}, refunded, after{invoice.ActAccept: refunded}},
		"dismissed, and being refunded": {invoice.UseFacts{Dismissed: true, Pending: some}, refunding, after{invoice.ActRefund: refunding}},
	} {
		c.facts.Amount = all
		for _, act := range []invoice.UseAct{invoice.ActNone, invoice.ActAttribute, invoice.ActRefund, invoice.ActDismiss, invoice.ActAccept} {
			want, allowed := c.after[act]
			if act == invoice.ActNone {
				want, allowed = c.is, true
			}
			got, err := invoice.ChangeUse(c.facts, act)
			var used *invoice.UsedError
			switch {
			case allowed && (err != nil || got != want):
				t.Errorf("%s, %q: %s, %v; want %s", name, act, got, err, want)
			case !allowed && (!errors.As(err, &used) || used.Use != c.is || got != c.is):
				t.Errorf("%s, %q: %s, %v; want a refusal that names %s", name, act, got, err, c.is)
			}
		}
	}
}

// TestUsesExcludeEachOther draws facts. A person cannot put a payment that has a use to another use,
// except that a counted payment can be sent back. A refused act does not change the use.
func TestUsesExcludeEachOther(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		amount := func(label string) invoice.Amount { return invoice.NewAmount(rapid.Uint64Range(0, 3).Draw(r, label)) }
		f := invoice.UseFacts{
			Amount: invoice.NewAmount(3), Counted: rapid.Bool().Draw(r, "counted"), Dismissed: rapid.Bool().Draw(r, "dismissed"), Attributing: rapid.Bool().Draw(r, "attributing"),
			Accepted: rapid.Bool().Draw(r, "accepted"), Reserved: amount("reserved"), Pending: amount("pending"), Refunded: amount("refunded"),
		}
		was, _ := invoice.ChangeUse(f, invoice.ActNone)
		act := rapid.SampledFrom([]invoice.UseAct{invoice.ActAttribute, invoice.ActRefund, invoice.ActDismiss}).Draw(r, "act")
		is, err := invoice.ChangeUse(f, act)
		sendsBack := act == invoice.ActRefund && (was == invoice.UseCounted || was == invoice.UseRefunding)
		switch {
		case err != nil && is != was:
			r.Errorf("a refused %s changes %s to %s", act, was, is)
		case err == nil && is != was && was != invoice.UseUndecided && !sendsBack:
			r.Errorf("%s changes %s to %s", act, was, is)
		}
	})
}
