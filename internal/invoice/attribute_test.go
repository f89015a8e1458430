package invoice_test

import (
	"testing"

	"github.com/quittance/quittance/internal/invoice"
)

var (
	merchant = invoice.Address{0xaa}
	payer    = invoice.Address{0xbb}
	token    = invoice.Address{0xcc}
)

// openInvoice is open from 1000 to 2000 and asks for 100, or 107 by plain
// transfer.
func openInvoice(id string) invoice.Invoice {
	return invoice.Invoice{
		ID: id, CommitmentID: invoice.Hash{0: 1, 1: id[0]}, MerchantID: "acme", Currency: "USDC", ChainKey: "base",
		Terms:  invoice.Terms{Merchant: merchant, Token: token, Amount: invoice.NewAmount(100), ExpiresAt: 2000},
		Status: invoice.Open, CreatedAt: 1000, TransferAmount: invoice.NewAmount(107),
	}
}

func transfer(amount uint64) invoice.Transfer {
	return invoice.Transfer{
		Position: invoice.Position{BlockNumber: 5, BlockTime: 1500},
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
	status := func(s invoice.Status) func(*invoice.Candidate) {
		return func(c *invoice.Candidate) { c.Status = s }
	}
	at := func(amount uint64, blockTime int64) invoice.Transfer {
		m := transfer(amount)
		m.BlockTime = blockTime
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
		{"bare amount of a paid one", transfer(100), candidates{with(a, status(invoice.Paid))}, "", ""},
		{"bare amount of a covered one", transfer(100), candidates{with(a, func(c *invoice.Candidate) { c.Covered = true })}, "", ""},
		{"transfer amount of a covered one", transfer(107), candidates{with(a, func(c *invoice.Candidate) { c.Covered = true })}, "a", invoice.ByTransferAmount},
		{"evidence for a paid one", tagged(9, invoice.Evidence{Calldata: a.CommitmentID}), candidates{with(a, status(invoice.Paid))}, "a", invoice.ByCalldata},

		{"registry before authorization", tagged(9, invoice.Evidence{Registry: a.CommitmentID, Authorization: b.CommitmentID}),
			candidates{with(b, same), with(a, same)}, "a", invoice.ByRegistry},
		{"authorization before calldata", tagged(9, invoice.Evidence{Authorization: b.CommitmentID, Calldata: a.CommitmentID}),
			candidates{with(a, same), with(b, same)}, "b", invoice.ByAuthorization},
		{"calldata before transfer amount", tagged(107, invoice.Evidence{Calldata: b.CommitmentID}),
			candidates{with(a, same), with(b, same)}, "b", invoice.ByCalldata},
		{"transfer amount before bare amount", transfer(107),
			candidates{with(b, func(c *invoice.Candidate) { c.Amount = invoice.NewAmount(107) }), with(a, same)}, "a", invoice.ByTransferAmount},
		{"bare amount before that of a closed one", transfer(101),
			candidates{with(a, func(c *invoice.Candidate) { c.Status, c.TransferAmount = invoice.Paid, invoice.NewAmount(101) }), with(b, same)}, "b", invoice.ByAmount},
		{"evidence that nobody has is none", tagged(107, invoice.Evidence{Registry: invoice.Hash{9}, Authorization: invoice.Hash{8}, Calldata: invoice.Hash{7}}),
			candidates{with(a, same)}, "a", invoice.ByTransferAmount},
		{"no evidence and no commitment", transfer(9),
			candidates{with(a, func(c *invoice.Candidate) { c.CommitmentID = invoice.Hash{} })}, "", ""},

		{"two transfer amounts", transfer(107), candidates{with(a, same), with(b, func(c *invoice.Candidate) { c.TransferAmount = invoice.NewAmount(107) })}, "", ""},
		{"two bare amounts", transfer(100), candidates{with(a, same), with(b, func(c *invoice.Candidate) { c.Amount = invoice.NewAmount(100) })}, "", ""},
		{"two bare amounts, one covered", transfer(100),
			candidates{with(a, func(c *invoice.Candidate) { c.Covered = true }), with(b, func(c *invoice.Candidate) { c.Amount = invoice.NewAmount(100) })}, "b", invoice.ByAmount},
		{"two bare amounts are not solved by a closed one", transfer(100),
			candidates{with(a, same), with(b, func(c *invoice.Candidate) { c.Amount = invoice.NewAmount(100) }),
				with(openInvoice("c"), func(c *invoice.Candidate) { c.Status, c.TransferAmount = invoice.Paid, invoice.NewAmount(100) })}, "", ""},
		{"two of the same evidence", tagged(9, invoice.Evidence{Registry: a.CommitmentID}),
			candidates{with(a, same), with(b, func(c *invoice.Candidate) { c.CommitmentID = a.CommitmentID })}, "", ""},
		{"two closed ones", transfer(107), candidates{with(a, status(invoice.Paid)),
			with(b, func(c *invoice.Candidate) { c.Status, c.TransferAmount = invoice.Paid, invoice.NewAmount(107) })}, "", ""},
		{"open one before a closed one of the same transfer amount", transfer(107), candidates{with(a, same),
			with(b, func(c *invoice.Candidate) { c.Status, c.TransferAmount = invoice.Paid, invoice.NewAmount(107) })}, "a", invoice.ByTransferAmount},

		{"within the tolerance", transfer(95), candidates{with(ta, same), with(tb, same)}, "a", invoice.ByTolerance},
		{"below the tolerance", transfer(94), candidates{with(ta, same), with(tb, same)}, "", ""},
		{"within two tolerances", transfer(99), candidates{with(ta, same), with(tb, same)}, "", ""},
		{"within two tolerances, one covered", transfer(99),
			candidates{with(ta, func(c *invoice.Candidate) { c.Covered = true }), with(tb, same)}, "b", invoice.ByTolerance},
		{"within the tolerance of a paid one", transfer(99), candidates{with(ta, status(invoice.Paid))}, "", ""},
		{"within the tolerance, too late", at(99, 2001), candidates{with(ta, same)}, "", ""},
		{"bare amount before a tolerance", transfer(100), candidates{with(tb, same), with(ta, same)}, "a", invoice.ByAmount},
		{"transfer amount of a closed one before a tolerance", transfer(99),
			candidates{with(ta, same), with(b, func(c *invoice.Candidate) { c.Status, c.TransferAmount = invoice.Paid, invoice.NewAmount(99) })}, "b", invoice.ByTransferAmount},

		{"block too early", at(107, 1000-invoice.ClockSkew-1), candidates{with(a, same)}, "", ""},
		{"block as early as clocks differ", at(107, 1000-invoice.ClockSkew), candidates{with(a, same)}, "a", invoice.ByTransferAmount},
		{"bare amount too early", at(100, 1000-invoice.ClockSkew-1), candidates{with(a, same)}, "", ""},
		{"bare amount as early as clocks differ", at(100, 1000-invoice.ClockSkew), candidates{with(a, same)}, "a", invoice.ByAmount},
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
			got, ok := invoice.Attribute(test.transfer, test.candidates)
			if ok != (test.invoice != "") {
				t.Fatalf("attributed: %t (to %s)", ok, got.Invoice.ID)
			}
			if ok && (got.Invoice.ID != test.invoice || got.Method != test.method) {
				t.Errorf("attributed to %s by %s, want %s by %s", got.Invoice.ID, got.Method, test.invoice, test.method)
			}
		})
	}
}

// TestAttributeCountsNothingElse takes each transfer that would count and
// changes the one thing that makes it another's.
func TestAttributeCountsNothingElse(t *testing.T) {
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
		good.BlockTime, good.ChainKey, good.Token, good.From, good.To = 1500, "base", token, payer, merchant
		c := []invoice.Candidate{{Invoice: test.inv}}
		if _, ok := invoice.Attribute(good, c); !ok {
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
			if got, ok := invoice.Attribute(bad, c); ok {
				t.Errorf("%s, %s: attributed to %s by %s", name, what, got.Invoice.ID, got.Method)
			}
		}
	}
}
