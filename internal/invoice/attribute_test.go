package invoice_test

import (
	"slices"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
)

var (
	merchant = invoice.Address{0xaa}
	payer    = invoice.Address{0xbb}
	token    = invoice.Address{0xcc}
)

// openInvoice is open from 1000 to 2000 and asks for 100, or 107 by plain transfer.
func openInvoice(id string) invoice.Invoice {
	return invoice.Invoice{
		ID: id, CommitmentID: invoice.Hash{0: 1, 1: id[0]}, MerchantID: "acme", Currency: "USDC", ChainKey: "base",
		Terms:  invoice.Terms{Merchant: merchant, Token: token, Amount: invoice.NewAmount(100), ExpiresAt: invoice.Unix(2000)},
		Status: invoice.Open, CreatedAt: invoice.Unix(1000), FromBlock: 4, TransferAmount: invoice.NewAmount(107),
	}
}

// markTransferAmount marks the last candidate with the transfer's amount as a transfer amount, because the amount was
// assigned to that one last.
func markTransferAmount(t invoice.Transfer, candidates []invoice.Candidate) []invoice.Candidate {
	candidates = slices.Clone(candidates)
	for i := range slices.Backward(candidates) {
		if candidates[i].TransferAmount == t.Amount {
			candidates[i].HasTransferAmount = true
			break
		}
	}
	return candidates
}

func transfer(amount uint64) invoice.Transfer {
	return invoice.Transfer{
		Position: invoice.Position{BlockNumber: 5, BlockTime: invoice.Unix(1500)},
		ChainKey: "base", Token: token, Currency: "USDC", From: payer, To: merchant, Amount: invoice.NewAmount(amount),
	}
}

func TestAttribute(t *testing.T) {
	t.Parallel()
	a, b := openInvoice("a"), openInvoice("b")
	b.TransferAmount = invoice.NewAmount(109)
	b.Amount = invoice.NewAmount(101)
	with := func(inv invoice.Invoice, change func(*invoice.Candidate)) invoice.Candidate {
		c := invoice.Candidate{Invoice: inv}
		change(&c)
		return c
	}
	same := func(*invoice.Candidate) {}
	covered := func(c *invoice.Candidate) { c.Covered = true }
	remains := func(n uint64) func(*invoice.Candidate) {
		return func(c *invoice.Candidate) { c.Remainder = invoice.NewAmount(n) }
	}
	in := func(amount, block uint64) invoice.Transfer {
		m := transfer(amount)
		m.BlockNumber = block
		return m
	}
	status := func(s invoice.Status) func(*invoice.Candidate) { return func(c *invoice.Candidate) { c.Status = s } }
	at := func(amount uint64, blockTime int64) invoice.Transfer {
		m := transfer(amount)
		m.BlockTime = invoice.Unix(blockTime)
		return m
	}
	tagged := func(amount uint64, e invoice.Evidence) invoice.Transfer {
		m := transfer(amount)
		m.Evidence = e
		return m
	}
	const month = 30 * 24 * 60 * 60
	tolerant := func(inv invoice.Invoice, tolerance uint64) invoice.Invoice {
		inv.Tolerance = invoice.NewAmount(tolerance)
		return inv
	}
	ta, tb := tolerant(a, 5), tolerant(b, 2)
	type candidates = []invoice.Candidate
	for _, test := range []struct {
		name       string
		transfer   invoice.Transfer
		candidates candidates
		invoice    string
		method     invoice.Method
	}{
		{"nobody", transfer(107), nil, "", ""},
		{"nothing that fits", transfer(108), candidates{with(a, same), with(b, same)}, "", ""},

		{"registry", tagged(50, invoice.Evidence{Registry: a.CommitmentID}), candidates{with(a, same), with(b, same)}, "a", invoice.ByRegistry},
		{"authorization", tagged(50, invoice.Evidence{Authorization: b.CommitmentID}), candidates{with(a, same), with(b, same)}, "b", invoice.ByAuthorization},
		{"calldata", tagged(50, invoice.Evidence{Calldata: a.CommitmentID}), candidates{with(a, same), with(b, same)}, "a", invoice.ByCalldata},
		{"transfer amount", transfer(107), candidates{with(a, same), with(b, same)}, "a", invoice.ByTransferAmount},
		{"bare amount", transfer(101), candidates{with(a, same), with(b, same)}, "b", invoice.ByAmount},
		{"transfer amount of a paid one", transfer(107), candidates{with(a, status(invoice.Paid))}, "a", invoice.ByTransferAmount},
		{"transfer amount of an expired one", at(107, 2001), candidates{with(a, status(invoice.Expired))}, "a", invoice.ByTransferAmount},
		{"transfer amount of a void one", transfer(107), candidates{with(a, status(invoice.Void))}, "a", invoice.ByTransferAmount},
		{"bare amount of one that is paid by later ones", transfer(100), candidates{with(a, status(invoice.Paid))}, "a", invoice.ByAmount},
		{"bare amount of one that is expired by now", transfer(100), candidates{with(a, status(invoice.Expired))}, "a", invoice.ByAmount},
		{"bare amounts of two, one expired by now", transfer(100),
			candidates{with(a, status(invoice.Expired)), with(openInvoice("c"), same)}, "", ""},
		{"bare amount of a void one", transfer(100), candidates{with(a, status(invoice.Void))}, "", ""},
		{"bare amount of a covered one", transfer(100), candidates{with(a, covered)}, "", ""},
		{"transfer amount of a covered one", transfer(107), candidates{with(a, covered)}, "a", invoice.ByTransferAmount},
		{"evidence for a paid one", tagged(9, invoice.Evidence{Calldata: a.CommitmentID}), candidates{with(a, status(invoice.Paid))}, "a", invoice.ByCalldata},

		{"registry before authorization", tagged(9, invoice.Evidence{Registry: a.CommitmentID, Authorization: b.CommitmentID}),
			candidates{with(b, same), with(a, same)}, "a", invoice.ByRegistry},
		{"authorization before calldata", tagged(9, invoice.Evidence{Authorization: b.CommitmentID, Calldata: a.CommitmentID}),
			candidates{with(a, same), with(b, same)}, "b", invoice.ByAuthorization},
		{"calldata before transfer amount", tagged(107, invoice.Evidence{Calldata: b.CommitmentID}),
			candidates{with(a, same), with(b, same)}, "b", invoice.ByCalldata},
		{"transfer amount before bare amount", transfer(107),
			candidates{with(b, func(c *invoice.Candidate) { c.Amount = invoice.NewAmount(107) }), with(a, same)}, "a", invoice.ByTransferAmount},
		{"bare amount that was told for a covered one", transfer(101),
			candidates{with(a, func(c *invoice.Candidate) { c.Covered, c.TransferAmount = true, invoice.NewAmount(101) }), with(b, same)}, "", ""},
		{"bare amount that was told for an expired one", at(101, 2001),
			candidates{with(a, func(c *invoice.Candidate) { c.TransferAmount = invoice.NewAmount(101) }), with(b, func(c *invoice.Candidate) { c.ExpiresAt = invoice.Unix(3000) })}, "", ""},
		{"bare amount that was told too long ago", at(101, 2001+month),
			candidates{with(a, func(c *invoice.Candidate) { c.TransferAmount = invoice.NewAmount(101) }), with(b, func(c *invoice.Candidate) { c.ExpiresAt = invoice.Unix(3000 + month) })}, "b", invoice.ByAmount},
		{"bare amount of a covered one after the amount told for a covered one", transfer(101),
			candidates{with(a, func(c *invoice.Candidate) { c.Covered, c.TransferAmount = true, invoice.NewAmount(101) }), with(b, covered)}, "a", invoice.ByTransferAmount},
		{"evidence that nobody has is none", tagged(107, invoice.Evidence{Registry: invoice.Hash{9}, Authorization: invoice.Hash{8}, Calldata: invoice.Hash{7}}),
			candidates{with(a, same)}, "a", invoice.ByTransferAmount},
		{"no evidence and no commitment", transfer(9),
			candidates{with(a, func(c *invoice.Candidate) { c.CommitmentID = invoice.Hash{} })}, "", ""},

		{"told for another one since", transfer(107), candidates{with(a, same), with(b, func(c *invoice.Candidate) { c.TransferAmount = invoice.NewAmount(107) })}, "b", invoice.ByTransferAmount},
		{"two bare amounts", transfer(100), candidates{with(a, same), with(b, func(c *invoice.Candidate) { c.Amount = invoice.NewAmount(100) })}, "", ""},
		{"two bare amounts, one covered", transfer(100),
			candidates{with(a, covered), with(b, func(c *invoice.Candidate) { c.Amount = invoice.NewAmount(100) })}, "b", invoice.ByAmount},
		{"two bare amounts are not solved by a covered one", transfer(100),
			candidates{with(a, same), with(b, func(c *invoice.Candidate) { c.Amount = invoice.NewAmount(100) }),
				with(openInvoice("c"), func(c *invoice.Candidate) { c.Covered, c.TransferAmount = true, invoice.NewAmount(100) })}, "", ""},
		{"two of the same evidence", tagged(9, invoice.Evidence{Registry: a.CommitmentID}),
			candidates{with(a, same), with(b, func(c *invoice.Candidate) { c.CommitmentID = a.CommitmentID })}, "", ""},

		{"within the tolerance", transfer(95), candidates{with(ta, same), with(tb, same)}, "a", invoice.ByTolerance},
		{"below the tolerance", transfer(94), candidates{with(ta, same), with(tb, same)}, "", ""},
		{"within two tolerances", transfer(99), candidates{with(ta, same), with(tb, same)}, "", ""},
		{"within two tolerances, one covered", transfer(99),
			candidates{with(ta, covered), with(tb, same)}, "b", invoice.ByTolerance},
		{"within the tolerance of one that is paid by later ones", transfer(99), candidates{with(ta, status(invoice.Paid))}, "a", invoice.ByTolerance},
		{"within the tolerance, too late", at(99, 2001), candidates{with(ta, same)}, "", ""},
		{"bare amount before a tolerance", transfer(100), candidates{with(tb, same), with(ta, same)}, "a", invoice.ByAmount},
		{"transfer amount of a closed one before a tolerance", transfer(99),
			candidates{with(ta, same), with(b, func(c *invoice.Candidate) { c.Covered, c.TransferAmount = true, invoice.NewAmount(99) })}, "b", invoice.ByTransferAmount},

		{"remainder", transfer(40), candidates{with(a, remains(40)), with(b, same)}, "a", invoice.ByAmount},
		{"two remainders", transfer(40), candidates{with(a, remains(40)), with(b, remains(40))}, "", ""},
		{"bare amount that remains of another one", transfer(101), candidates{with(a, remains(101)), with(b, same)}, "", ""},
		{"bare amount that remains of the same one", transfer(101), candidates{with(b, remains(101))}, "b", invoice.ByAmount},
		{"bare amount that remains of one which expired", at(101, 2001),
			candidates{with(a, remains(101)), with(b, func(c *invoice.Candidate) { c.ExpiresAt = invoice.Unix(3000) })}, "b", invoice.ByAmount},
		{"remainder that was told for a covered one", transfer(40),
			candidates{with(a, remains(40)), with(b, func(c *invoice.Candidate) { c.Covered, c.TransferAmount = true, invoice.NewAmount(40) })}, "b", invoice.ByTransferAmount},
		{"remainder before a tolerance", transfer(99), candidates{with(a, remains(99)), with(tb, same)}, "a", invoice.ByAmount},
		{"remainder, too late", at(40, 2001), candidates{with(a, remains(40))}, "", ""},
		{"part of a remainder", transfer(39), candidates{with(a, remains(40))}, "", ""},

		{"in the block that was known when it was created", in(107, 4), candidates{with(a, same)}, "a", invoice.ByTransferAmount},
		{"bare amount in the block that was known", in(100, 4), candidates{with(a, same)}, "", ""},
		{"bare amount in the block above", in(100, 5), candidates{with(a, same)}, "a", invoice.ByAmount},
		{"a clock that is wrong", at(100, 5), candidates{with(a, same)}, "a", invoice.ByAmount},
		{"last second", at(107, 2000), candidates{with(a, same)}, "a", invoice.ByTransferAmount},
		{"bare amount in the last second", at(100, 2000), candidates{with(a, same)}, "a", invoice.ByAmount},
		{"a second late", at(107, 2001), candidates{with(a, same)}, "a", invoice.ByTransferAmount},
		{"bare amount a second late", at(100, 2001), candidates{with(a, same)}, "", ""},
		{"as late as it means something", at(107, 2000+month), candidates{with(a, status(invoice.Expired))}, "a", invoice.ByTransferAmount},
		{"too late", at(107, 2000+month+1), candidates{with(a, status(invoice.Expired))}, "", ""},
		{"evidence is never too late", func() invoice.Transfer {
			m := at(9, 2000+10*month)
			m.Evidence.Calldata = a.CommitmentID
			return m
		}(), candidates{with(a, status(invoice.Expired))}, "a", invoice.ByCalldata},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, ok := invoice.Attribute(test.transfer, markTransferAmount(test.transfer, test.candidates), false)
			if ok != (test.invoice != "") {
				t.Fatalf("attributed: %t (to %s)", ok, got.Invoice.ID)
			}
			if ok && (got.Invoice.ID != test.invoice || got.Method != test.method) {
				t.Errorf("attributed to %s by %s, want %s by %s", got.Invoice.ID, got.Method, test.invoice, test.method)
			}
		})
	}
}

// TestAttributeDeposit pays a deposit invoice over 100. At its address every transfer pays it; at the settlement
// address only evidence does.
func TestAttributeDeposit(t *testing.T) {
	t.Parallel()
	deposit := invoice.Address{0xdd}
	a, b := openInvoice("a"), openInvoice("b")
	a.Collection, a.DepositAddress, a.TransferAmount, a.Tolerance = invoice.Deposit, deposit, invoice.Amount{}, invoice.NewAmount(5)
	to := func(receiver invoice.Address, amount uint64, change ...func(*invoice.Transfer)) invoice.Transfer {
		m := transfer(amount)
		m.To = receiver
		for _, by := range change {
			by(&m)
		}
		return m
	}
	named := func(inv invoice.Invoice) func(*invoice.Transfer) {
		return func(m *invoice.Transfer) { m.Evidence.Calldata = inv.CommitmentID }
	}
	for _, test := range []struct {
		name     string
		transfer invoice.Transfer
		status   invoice.Status
		invoice  string
		method   invoice.Method
	}{
		{"its amount", to(deposit, 100), invoice.Open, "a", invoice.ByDeposit},
		{"a minor unit", to(deposit, 1), invoice.Open, "a", invoice.ByDeposit},
		{"the transfer amount of another", to(deposit, 107), invoice.Open, "a", invoice.ByDeposit},
		{"naming another", to(deposit, 100, named(b)), invoice.Open, "a", invoice.ByDeposit},
		{"years late", to(deposit, 3, func(m *invoice.Transfer) { m.BlockTime = invoice.Unix(1 << 40) }), invoice.Expired, "a", invoice.ByDeposit},
		{"below the block that was known", to(deposit, 3, func(m *invoice.Transfer) { m.BlockNumber = 1 }), invoice.Open, "a", invoice.ByDeposit},
		{"paid", to(deposit, 3), invoice.Paid, "a", invoice.ByDeposit},
		{"void", to(deposit, 3), invoice.Void, "a", invoice.ByDeposit},
		{"nothing", to(deposit, 0), invoice.Open, "", ""},
		{"another token", to(deposit, 100, func(m *invoice.Transfer) { m.Token = invoice.Address{0xce} }), invoice.Open, "", ""},
		{"another chain", to(deposit, 100, func(m *invoice.Transfer) { m.ChainKey = "ethereum" }), invoice.Open, "", ""},
		{"draft", to(deposit, 100), invoice.Drafted, "", ""},
		{"another address", to(invoice.Address{0xde}, 100), invoice.Open, "", ""},
		{"named at the settlement address", to(merchant, 3, named(a)), invoice.Open, "a", invoice.ByCalldata},
		{"an amount at the settlement address", to(merchant, 107), invoice.Open, "b", invoice.ByTransferAmount},
		{"the amount of both at the settlement address", to(merchant, 100), invoice.Open, "b", invoice.ByAmount},
		{"within its tolerance at the settlement address", to(merchant, 96), invoice.Open, "", ""},
		{"its remainder at the settlement address", to(merchant, 40), invoice.Open, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			own := a
			own.Status = test.status
			candidates := []invoice.Candidate{{Invoice: b}, {Invoice: own, Remainder: invoice.NewAmount(40)}}
			got, ok := invoice.Attribute(test.transfer, markTransferAmount(test.transfer, candidates), false)
			if ok != (test.invoice != "") || ok && (got.Invoice.ID != test.invoice || got.Method != test.method) {
				t.Errorf("attributed: %t, to %q by %q, want %q by %q", ok, got.Invoice.ID, got.Method, test.invoice, test.method)
			}
		})
	}
}

// TestAttributeSweepOfAnotherService: the sweep of another service's deposit address does not pay an
// invoice, even with the exact amount.
func TestAttributeSweepOfAnotherService(t *testing.T) {
	t.Parallel()
	told := invoice.Candidate{Invoice: openInvoice("a"), HasTransferAmount: true}
	sweep := transfer(107)
	if a, ok := invoice.Attribute(sweep, []invoice.Candidate{told}, false); !ok || a.Method != invoice.ByTransferAmount {
		t.Errorf("a payment of the amount is attributed by %q", a.Method)
	}
	sweep.Evidence.Registry = invoice.SweptElsewhere
	if a, ok := invoice.Attribute(sweep, []invoice.Candidate{told}, false); ok {
		t.Errorf("the sweep pays %s by %q", a.Invoice.ID, a.Method)
	}
}

// TestAttributeTruncated expects no attribution if more invoices have the amount than there are candidates.
func TestAttributeTruncated(t *testing.T) {
	t.Parallel()
	inv := openInvoice("a")
	inv.Tolerance = invoice.NewAmount(5)
	named := transfer(1)
	named.Evidence.Calldata = inv.CommitmentID
	told := invoice.Candidate{Invoice: inv, HasTransferAmount: true}
	covered := told
	covered.Covered = true
	for name, test := range map[string]struct {
		t    invoice.Transfer
		c    invoice.Candidate
		want invoice.Method
	}{
		"named":            {named, told, invoice.ByCalldata},
		"told":             {transfer(107), told, invoice.ByTransferAmount},
		"told, covered":    {transfer(107), covered, ""},
		"bare":             {transfer(100), invoice.Candidate{Invoice: inv}, ""},
		"remainder":        {transfer(40), invoice.Candidate{Invoice: inv, Remainder: invoice.NewAmount(40)}, ""},
		"in the tolerance": {transfer(96), invoice.Candidate{Invoice: inv}, ""},
	} {
		if _, ok := invoice.Attribute(test.t, []invoice.Candidate{test.c}, false); !ok {
			t.Errorf("%s, alone: unattributed", name)
		}
		if got, _ := invoice.Attribute(test.t, []invoice.Candidate{test.c}, true); got.Method != test.want {
			t.Errorf("%s, in a crowd: by %q, want %q", name, got.Method, test.want)
		}
	}
}

// TestAttributeIgnoresOtherTransfers takes each transfer that would count, and changes the one property that makes it
// count.
func TestAttributeIgnoresOtherTransfers(t *testing.T) {
	t.Parallel()
	inv := openInvoice("a")
	paid := inv
	paid.Status = invoice.Paid
	for name, test := range map[string]struct {
		inv invoice.Invoice
		t   invoice.Transfer
	}{
		"registry":        {inv, invoice.Transfer{Amount: invoice.NewAmount(5), Evidence: invoice.Evidence{Registry: inv.CommitmentID}}},
		"authorization":   {inv, invoice.Transfer{Amount: invoice.NewAmount(5), Evidence: invoice.Evidence{Authorization: inv.CommitmentID}}},
		"calldata":        {inv, invoice.Transfer{Amount: invoice.NewAmount(5), Evidence: invoice.Evidence{Calldata: inv.CommitmentID}}},
		"transfer amount": {inv, invoice.Transfer{Amount: invoice.NewAmount(107)}},
		"bare amount":     {inv, invoice.Transfer{Amount: invoice.NewAmount(100)}},
		"closed":          {paid, invoice.Transfer{Amount: invoice.NewAmount(107)}},
	} {
		good := test.t
		good.BlockNumber, good.BlockTime, good.ChainKey, good.Token, good.From, good.To = 5, invoice.Unix(1500), "base", token, payer, merchant
		c := markTransferAmount(good, []invoice.Candidate{{Invoice: test.inv}})
		if _, ok := invoice.Attribute(good, c, false); !ok {
			t.Fatalf("%s: the transfer itself is not attributed", name)
		}
		for what, change := range map[string]func(*invoice.Transfer){
			"token":           func(m *invoice.Transfer) { m.Token = invoice.Address{1} },
			"chain":           func(m *invoice.Transfer) { m.ChainKey = "base-sepolia" },
			"address":         func(m *invoice.Transfer) { m.To = invoice.Address{1} },
			"nothing":         func(m *invoice.Transfer) { m.Amount = invoice.Amount{} },
			"sent to oneself": func(m *invoice.Transfer) { m.From = m.To },
		} {
			bad := good
			change(&bad)
			if got, ok := invoice.Attribute(bad, c, false); ok {
				t.Errorf("%s, %s: attributed to %s by %s", name, what, got.Invoice.ID, got.Method)
			}
		}
	}
}
