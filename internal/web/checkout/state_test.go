package checkout

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/checkout/locale"
)

// outcomes are the final and intermediate states of an invoice.
var outcomes = []struct {
	name  string
	set   func(*world)
	state state
	says  []string // in the status
	pays  bool     // requests a payment
}{
	{"waiting", func(*world) {}, waiting, []string{"Waiting for your payment"}, true},
	{"last second", func(w *world) { w.now = expires }, waiting, nil, true},
	{"seen", func(w *world) {
		w.payments = []invoice.Payment{payment(4_900_123, 11, defaultNow, invoice.Pending)}
	}, seen, []string{"Payment seen", "2 of 3 confirmations", "Waiting (done) Seen Paid"}, false},
	{"seen, but the chain is read again", func(w *world) {
		w.payments = []invoice.Payment{payment(4_900_123, 13, defaultNow, invoice.Pending)}
	}, seen, []string{"0 of 3 confirmations"}, false},
	{"seen on a chain with tags", func(w *world) {
		w.chain.Finality = chain.Finality{Tag: chain.TagFinalized, Depth: 128}
		w.payments = []invoice.Payment{payment(4_900_123, 11, defaultNow, invoice.Pending)}
	}, seen, []string{"Confirmations so far: 2"}, false},
	{"seen in time, looked at after it", func(w *world) {
		w.now = expires + 60
		w.payments = []invoice.Payment{payment(4_900_123, 11, expires, invoice.Pending)}
	}, seen, []string{"Payment seen"}, false},
	{"orphaned", func(w *world) {
		w.payments = []invoice.Payment{payment(4_900_123, 11, defaultNow, invoice.Orphaned)}
	}, unknown, []string{"Taken back by the network", "do not pay again"}, false},
	{"orphaned just now, of an old block", func(w *world) {
		w.now, w.orphanedAt = defaultNow+800, defaultNow+790
		w.payments = []invoice.Payment{payment(4_900_123, 9, defaultNow, invoice.Orphaned)}
	}, unknown, []string{"Taken back by the network", "do not pay again"}, false},
	{"orphaned long ago", func(w *world) {
		w.now = defaultNow + 601
		w.payments = []invoice.Payment{payment(4_900_123, 11, defaultNow, invoice.Orphaned)}
	}, waiting, []string{"Waiting"}, true},
	{"part, and the rest orphaned", func(w *world) {
		w.now = defaultNow + 599
		w.payments = []invoice.Payment{payment(2_000_000, 11, defaultNow, invoice.Pending), payment(2_900_000, 12, defaultNow, invoice.Orphaned)}
	}, unknown, []string{"Taken back by the network"}, false},
	{"orphaned, and paid again", func(w *world) {
		w.payments = []invoice.Payment{payment(4_900_123, 11, defaultNow, invoice.Orphaned), payment(4_900_123, 12, defaultNow, invoice.Pending)}
	}, seen, nil, false},
	{"part", func(w *world) {
		w.payments = []invoice.Payment{payment(2_000_000, 11, defaultNow, invoice.Pending)}
	}, partial, []string{"Paid in part", "2.00 USDC of 4.90 USDC has arrived. Please pay the rest in time."}, true},
	{"checking", func(w *world) { w.now = expires + 1 }, checking,
		[]string{"Time is up", "carried out by 21 September 2026, 14:28:20 UTC still counts",
			"A later one is not lost: corner-cafe can accept or refund it. Please send nothing now."}, false},
	{"checking, late payment", func(w *world) {
		w.now = expires + 5
		w.payments = []invoice.Payment{payment(4_900_123, 11, expires+1, invoice.Pending)}
	}, checking, []string{"Time is up"}, false},
	{"halted", func(w *world) { w.cursor.Halted = "finality violated" }, unknown,
		[]string{"We cannot see payments now", "The connection to Local test chain is interrupted. If you have paid, do not pay again.",
			"If you have not paid, please wait. The time to pay ends on 21 September 2026, 14:28:20 UTC."}, false},
	{"halted, and the time is up", func(w *world) { w.cursor.Halted, w.now = "finality violated", expires+1 }, unknown,
		[]string{"do not pay again", "The time to pay ended on 21 September 2026, 14:28:20 UTC. Please send nothing now."}, false},
	{"halted, after a part", func(w *world) {
		w.cursor.Halted = "finality violated"
		w.payments = []invoice.Payment{payment(2_000_000, 11, defaultNow, invoice.Pending)}
	}, unknown, []string{"do not pay again"}, false},
	{"halted, after the payment was seen", func(w *world) {
		w.cursor.Halted = "finality violated"
		w.payments = []invoice.Payment{payment(4_900_123, 11, defaultNow, invoice.Pending)}
	}, seen, []string{"Payment seen", "The connection to Local test chain is interrupted. Please do not pay again"}, false},
	{"halted, after the end", func(w *world) {
		w.cursor.Halted, w.invoice.Status = "finality violated", invoice.Expired
	}, expired, []string{"Expired"}, false},
	{"paid", func(w *world) {
		w.settle("", 4_900_123)
	}, paid, []string{"Paid", "corner-cafe received the payment on 21 September 2026, 14:13:27 UTC.", "Paid (done)"}, false},
	{"paid and refunded", func(w *world) {
		w.settle("", 4_900_123)
		w.invoice.AmountRefunded = invoice.NewAmount(1_500_000)
	}, paid, []string{"1.50 USDC was refunded."}, false},
	{"paid and refunded in full", func(w *world) {
		w.settle("", 4_900_123)
		w.refund(4_900_000, 123)
	}, refunded, []string{"Refunded", "4.900123 USDC was refunded. The invoice was paid on 21 September 2026, 14:13:27 UTC"}, false},
	{"overpaid", func(w *world) {
		w.settle(invoice.Overpaid, 6_000_000)
	}, paid, []string{"6.00 USDC has arrived, 1.10 USDC too much. Contact corner-cafe for a refund of 1.10 USDC."}, false},
	{"overpaid, the excess sent back", func(w *world) {
		w.settle(invoice.Overpaid, 6_000_000)
		w.refund(1_100_000)
	}, paid, []string{"6.00 USDC has arrived, 1.10 USDC too much. 1.10 USDC was refunded. Waiting (done)"}, false},
	{"overpaid, a part of the excess sent back", func(w *world) {
		w.settle(invoice.Overpaid, 6_000_000)
		w.refund(400_000)
	}, paid, []string{"1.10 USDC too much. 0.40 USDC was refunded. Contact corner-cafe for a refund of 0.70 USDC."}, false},
	{"paid twice, the second payment sent back", func(w *world) {
		w.settle(invoice.Duplicate, 9_800_246)
		w.invoice.Sums.Tally.Due = invoice.NewAmount(4_900_123)
		w.refund(4_900_123)
	}, paid, []string{"4.900123 USDC too much. 4.900123 USDC was refunded."}, false},
	{"paid twice", func(w *world) {
		w.settle(invoice.Duplicate, 9_800_123)
	}, paid, []string{"9.800123 USDC has arrived, 4.900123 USDC too much. Contact corner-cafe for a refund of 4.900123 USDC."}, false},
	{"paid twice, with the suffix", func(w *world) {
		w.settle(invoice.Duplicate, 9_800_246)
		w.invoice.Sums.Tally.Due = invoice.NewAmount(4_900_123)
	}, paid, []string{"9.800246 USDC has arrived, 4.900123 USDC too much."}, false},
	{"expired", func(w *world) {
		w.invoice.Status = invoice.Expired
	}, expired, []string{"Expired", "No payment had arrived by 21 September 2026, 14:28:20 UTC. Please send nothing now. If you paid"}, false},
	{"expired, orphaned", func(w *world) {
		w.invoice.Status = invoice.Expired
		w.payments = []invoice.Payment{payment(4_900_123, 11, defaultNow, invoice.Orphaned)}
	}, expired, []string{"No payment had arrived"}, false},
	{"late", func(w *world) {
		w.invoice.Status = invoice.Expired
		w.payments = []invoice.Payment{payment(4_900_123, 11, expires+9, invoice.Pending)}
	}, expired, []string{"Paid too late", "4.900123 USDC arrived after 21 September 2026, 14:28:20 UTC, too late to count. The money is not lost. Ask corner-cafe to accept or refund it, and give the transaction hash. Please send nothing now."}, false},
	{"late, and too much", func(w *world) {
		w.invoice.Status, w.invoice.Exception = invoice.Expired, invoice.Late
		w.payments = []invoice.Payment{payment(6_000_000, 11, expires+9, invoice.Confirmed)}
		w.invoice.AmountPaid = invoice.NewAmount(6_000_000)
	}, expired, []string{"Paid too late", "6.00 USDC arrived after 21", "6.00 USDC has arrived, 1.10 USDC too much.", "not lost"}, false},
	{"underpaid", func(w *world) {
		w.invoice.Status, w.invoice.Exception = invoice.Expired, invoice.Underpaid
		w.payments = []invoice.Payment{payment(2_000_000, 11, defaultNow, invoice.Confirmed)}
	}, expired, []string{"Expired: paid in part", "2.00 USDC of 4.90 USDC had arrived by 21 September 2026, 14:28:20 UTC.", "not lost"}, false},
	{"underpaid, waived", func(w *world) {
		w.invoice.Status, w.invoice.Exception, w.waived = invoice.Expired, invoice.Underpaid, true
		w.payments = []invoice.Payment{payment(2_000_000, 11, defaultNow, invoice.Confirmed)}
	}, paid, []string{"Accepted as paid", "accepted 2.90 USDC less."}, false},
	{"waived, more late", func(w *world) {
		w.invoice.Status, w.invoice.Exception, w.waived = invoice.Expired, invoice.Late, true
		w.payments = []invoice.Payment{
			payment(2_000_000, 11, defaultNow, invoice.Confirmed), payment(1_000_000, 12, expires+9, invoice.Confirmed)}
	}, paid, []string{"Accepted as paid", "accepted 2.90 USDC less.", "1.00 USDC arrived after 21 September 2026, 14:28:20 UTC, too late to count."}, false},
	{"underpaid, the rest late", func(w *world) {
		w.invoice.Status, w.invoice.Exception = invoice.Expired, invoice.Late
		w.payments = []invoice.Payment{
			payment(2_000_000, 11, defaultNow, invoice.Confirmed), payment(2_900_000, 12, expires+9, invoice.Confirmed)}
	}, expired, []string{"2.00 USDC of 4.90 USDC had arrived by", "2.90 USDC arrived after 21", "not lost"}, false},
	{"late, sent back in part", func(w *world) {
		w.invoice.Status, w.invoice.Exception = invoice.Expired, invoice.Late
		w.payments = []invoice.Payment{payment(4_900_123, 11, expires+9, invoice.Confirmed)}
		w.invoice.AmountRefunded = invoice.NewAmount(4_900_122)
	}, expired, []string{"not lost", "4.900122 USDC was refunded."}, false},
	{"late, sent back", func(w *world) {
		w.invoice.Status, w.invoice.Exception = invoice.Expired, invoice.Late
		w.payments = []invoice.Payment{payment(4_900_123, 11, expires+9, invoice.Confirmed)}
		w.refund(4_900_123)
	}, refunded, []string{"Refunded", "4.900123 USDC was refunded. The time to pay ended on 21 September 2026, 14:28:20 UTC. Please send nothing"}, false},
	{"held", func(w *world) { w.invoice.ClosedBlock = 10 }, checking, []string{"is being checked", "whether it was already paid or canceled. Please send nothing now."}, false},
	{"held, paid in part and past its time", func(w *world) {
		w.now, w.invoice.ClosedBlock = expires+1, 12
		w.payments = []invoice.Payment{payment(2_000_000, 11, defaultNow, invoice.Confirmed)}
	}, checking, []string{"is being checked"}, false},
	{"held, and the chain is halted", func(w *world) {
		w.invoice.ClosedBlock, w.cursor.Halted = 12, "finality violated"
		w.payments = []invoice.Payment{payment(2_500_000, 11, defaultNow, invoice.Confirmed)}
	}, checking, []string{"is being checked"}, false},
	{"void", func(w *world) { w.invoice.Status = invoice.Void }, void, []string{"Invoice canceled", "Please send nothing now. If you have paid, contact corner-cafe."}, false},
	{"void, paid in part", func(w *world) {
		w.invoice.Status, w.invoice.ClosedBlock = invoice.Void, 11
		w.payments = []invoice.Payment{payment(2_000_000, 11, defaultNow, invoice.Confirmed)}
	}, void, []string{"Invoice canceled", "2.00 USDC has arrived. The money is not lost. Ask corner-cafe for a refund"}, false},
	{"void, paid later and sent back", func(w *world) {
		w.invoice.Status, w.invoice.ClosedBlock = invoice.Void, 9
		w.payments = []invoice.Payment{payment(4_900_123, 11, defaultNow, invoice.Confirmed)}
		w.refund(4_900_123)
	}, refunded, []string{"4.900123 USDC was refunded. The invoice was canceled. Please send nothing now."}, false},
	{"draft", func(w *world) { w.invoice.Status = invoice.Drafted }, draft, []string{"not ready yet"}, false},
}

// settle makes the invoice paid, with the given total.
func (w *world) settle(e invoice.Exception, total uint64) {
	p := payment(total, 10, defaultNow, invoice.Confirmed)
	w.payments = append(w.payments, p)
	w.invoice.Status, w.invoice.Exception = invoice.Paid, e
	w.invoice.AmountPaid, w.invoice.SettledTx, w.invoice.SettledAt = p.Amount, p.TxHash, p.BlockTime
}

// refund sends amounts back, one after the other.
func (w *world) refund(amounts ...uint64) {
	for i, amount := range amounts {
		r := invoice.RefundRecord{InvoiceID: testID, Status: invoice.RefundConfirmed}
		r.Transfer.TxHash, r.Transfer.To, r.Transfer.Amount = invoice.Hash{0: 0xbb, 31: byte(i)}, payerAddress, invoice.NewAmount(amount)
		r.Transfer.ConfirmedAt = invoice.Unix(defaultNow + 600)
		w.refunds = append(w.refunds, r)
		w.invoice.AmountRefunded = w.invoice.AmountRefunded.Plus(r.Transfer.Amount)
	}
}

func TestPageOfEveryState(t *testing.T) {
	for _, story := range outcomes {
		t.Run(story.name, func(t *testing.T) {
			w := newWorld()
			story.set(w)
			page := w.page(t)
			told := page.ID(t, "status")
			for _, want := range story.says {
				if !strings.Contains(told.Words(), want) {
					t.Errorf("the status says\n%s\nwithout %q", told.Words(), want)
				}
			}
			if want := "state-" + string(story.state); told.Attrs["class"] != want {
				t.Errorf("the status has class %q, want %q", told.Attrs["class"], want)
			}
			if told.Attrs["role"] != "status" {
				t.Errorf("the status has role %q, which no screen reader announces", told.Attrs["role"])
			}
			expect.Equal(t, page.ID(t, "pay").Words() != "", story.pays, "the page asks for money:")
			expect.Equal(t, page.ID(t, "time").Words() != "", story.pays, "the page shows time left:")
			expect.Equal(t, len(page.ID(t, "received").Named("li")), len(w.payments), "the page lists … payments:")
			expect.Equal(t, len(page.ID(t, "refunds").Named("li")), len(w.refunds), "the page lists … refunds:")
			status := w.status(t)
			expect.Equal(t, status.State, story.state, "the status JSON says")
			if got := page.ID(t, "checkout").Attrs["data-version"]; got != status.Version || got == "" {
				t.Errorf("the page has version %q and its status %q; want the same", got, status.Version)
			}
		})
	}
}

func TestRefreshSlowsDownWhenNothingCanChange(t *testing.T) {
	for _, story := range outcomes {
		w := newWorld()
		story.set(w)
		final := w.invoice.Status == invoice.Paid || w.invoice.Status == invoice.Expired || w.invoice.Status == invoice.Void
		want := int64(2)
		if final {
			want = 15
		}
		expect.Equal(t, w.status(t).Refresh, want, "%s: the script asks again after … s:", story.name)
		reloads := w.page(t).All(func(e *element) bool { return e.Attrs["http-equiv"] == "refresh" })
		for _, r := range reloads {
			want := "10"
			if story.pays {
				want = "60"
			}
			expect.Equal(t, r.Attrs["content"], want, "%s: a browser without scripts reloads after … s:", story.name)
		}
		if final != (len(reloads) == 0) {
			t.Errorf("%s: the page has %d reloads without scripts; final is %t", story.name, len(reloads), final)
		}
	}
}

func TestVersionChangesWithTheView(t *testing.T) {
	versions := map[string]string{}
	for _, story := range outcomes {
		w := newWorld()
		story.set(w)
		version := w.status(t).Version
		w.cursor.Indexed.Number++
		if w.now++; w.now != expires+1 && w.status(t).Version != version {
			t.Errorf("%s: the version changed, though nothing but the time and the newest block has", story.name)
		}
		if story.name == "last second" || story.name == "seen on a chain with tags" || story.name == "halted, after the end" {
			continue // they differ from others in parts that the version leaves out
		}
		if other, ok := versions[version]; ok {
			t.Errorf("%s and %s have one version", story.name, other)
		}
		versions[version] = story.name
	}
}

func TestConfirmationsMoveThePage(t *testing.T) {
	w := newWorld()
	w.payments = []invoice.Payment{payment(4_900_123, 11, defaultNow, invoice.Pending)}
	before := w.status(t)
	w.cursor.Indexed.Number = 13
	if after := w.status(t); *before.Confirmations != (progress{Have: 2, Need: 3}) || *after.Confirmations != (progress{Have: 3, Need: 3}) {
		t.Errorf("a block on top of the payment changes the confirmations from %+v to %+v", before.Confirmations, after.Confirmations)
	}
	w.cursor.Indexed.Number = 99
	if got := w.page(t).ID(t, "status").Words(); !strings.Contains(got, "3 of 3 confirmations") {
		t.Errorf("the status says %q, want 3 of 3 confirmations", got)
	}
}

func TestPaymentsAreListedNewestFirst(t *testing.T) {
	for _, n := range []int{MaxPayments, MaxPayments + 1} {
		w := newWorld()
		w.invoice.Status = invoice.Expired
		for i := range n {
			w.payments = append(w.payments, payment(1, uint64(i), defaultNow, invoice.Confirmed))
		}
		received := w.page(t).ID(t, "received")
		items := received.Named("li")
		if len(items) != MaxPayments {
			t.Fatalf("%d of %d payments are listed, want %d", len(items), n, MaxPayments)
		}
		if newest := w.payments[n-1].TxHash.String(); !strings.Contains(items[0].Words(), newest) {
			t.Errorf("the first is %q, want the newest, %s", items[0].Words(), newest)
		}
		if more := strings.Contains(received.Words(), "And 1 earlier."); more != (n > MaxPayments) {
			t.Errorf("of %d payments the page says that one is left out: %t", n, more)
		}
	}
}

func TestDustIsListedOnly(t *testing.T) {
	for _, status := range []invoice.Status{invoice.Open, invoice.Expired} {
		w := newWorld()
		w.invoice.Status = status
		before := w.page(t)
		dust := payment(1, 11, defaultNow, invoice.Confirmed)
		dust.Method = invoice.ByCalldata
		w.payments = []invoice.Payment{dust}
		page := w.page(t)
		for _, part := range []string{"status", "pay"} {
			if got, want := page.ID(t, part).Words(), before.ID(t, part).Words(); got != want {
				t.Errorf("%s, with dust: %s reads\n%s, want\n%s", status, part, got, want)
			}
		}
		expect.Len(t, page.ID(t, "received").Named("li"), 1, "%s: … payments are listed:", status)
	}
}

func TestStaleSumsAreAddedUp(t *testing.T) {
	w := newWorld()
	w.stale = true
	for i := range uint64(MaxPayments + 1) {
		w.payments = append(w.payments, payment(100_000, i+1, defaultNow, invoice.Pending))
	}
	page := w.page(t)
	if got := page.ID(t, "status").Words(); !strings.Contains(got, "2.10 USDC of 4.90 USDC has arrived.") {
		t.Errorf("the status says %q", got)
	}
	if got := page.ID(t, "received").Words(); !strings.Contains(got, "And 1 earlier.") {
		t.Error("the page does not say that a payment is left out")
	}
}

func TestReceivedShowsThePaymentStatus(t *testing.T) {
	w := newWorld()
	w.invoice.Status = invoice.Expired
	w.payments = []invoice.Payment{
		payment(1_000_000, 13, expires+1, invoice.Confirmed),
		payment(1_000_000, 12, expires, invoice.Pending),
		payment(1_000_000, 11, defaultNow, invoice.Orphaned),
	}
	items := w.page(t).ID(t, "received").Named("li")
	for i, want := range []string{"1.00 USDC confirmed too late", "1.00 USDC being confirmed Time", "1.00 USDC taken back by the network Time"} {
		if got := items[i].Words(); !strings.HasPrefix(got, want) {
			t.Errorf("payment %d reads %q, want it to begin with %q", i, got, want)
		}
	}
}

func TestTimeLeft(t *testing.T) {
	for seconds, want := range map[int64]string{
		-5: "0 s", 0: "0 s", 1: "1 s", 59: "59 s", 60: "1 min 0 s", 893: "14 min 53 s", 3599: "59 min 59 s",
		3600: "1 h 0 min", 86399: "23 h 59 min", 86400: "1 d 0 h", 366 * 86400: "366 d 0 h",
	} {
		if got := strings.ReplaceAll(timeLeft(locale.English(), seconds), "\u00a0", " "); got != want {
			t.Errorf("%d seconds are %q, want %q", seconds, got, want)
		}
	}
}

func TestRefundsAreListed(t *testing.T) {
	w := newWorld()
	w.settle("", 4_900_123)
	w.refund(1_500_000)
	items := w.page(t).ID(t, "refunds").Named("li")
	if len(items) != 1 {
		t.Fatalf("%d refunds are listed, want 1", len(items))
	}
	for _, want := range []string{"1.50 USDC", "21 September 2026, 14:23:27 UTC", chain.Checksum(payerAddress), w.refunds[0].Transfer.TxHash.String()} {
		if !strings.Contains(items[0].Words(), want) {
			t.Errorf("the refund reads %q, want %q in it", items[0].Words(), want)
		}
	}
}

func TestWarningBeforeTheEnd(t *testing.T) {
	for left, want := range map[int64]bool{62: false, 61: false, 60: true, 1: true} {
		w := newWorld()
		w.now = expires + 1 - left
		warning := w.page(t).ID(t, "soon")
		if _, hidden := warning.Attrs["hidden"]; hidden == want {
			t.Errorf("%d seconds before the end, the warning is hidden: %t", left, hidden)
		}
		if !strings.Contains(warning.Words(), "carried out later do not count") {
			t.Errorf("the warning reads %q", warning.Words())
		}
	}
}

var returns = invoice.Details{ReturnURL: "https://shop.example/thanks?a=1&b=%22", CancelURL: "https://shop.example:8443/cart"}

// TestBackInEveryState checks where the page links to: to the return URL if no more money is due, else
// to the cancel URL.
func TestBackInEveryState(t *testing.T) {
	for _, story := range outcomes {
		t.Run(story.name, func(t *testing.T) {
			w := newWorld()
			story.set(w)
			expect.Len(t, w.page(t).ID(t, "back").Named("a"), 0, "an invoice without URLs has … links:")
			w.invoice.Details = returns
			links := w.page(t).ID(t, "back").Named("a")
			if len(links) != 1 {
				t.Fatalf("%d links, want 1", len(links))
			}
			want, host := returns.CancelURL, "shop.example:8443"
			if story.state == seen || story.state == paid {
				want, host = returns.ReturnURL, "shop.example"
			}
			if got := links[0]; got.Attrs["href"] != want || got.Attrs["rel"] != "noopener noreferrer" || got.Attrs["target"] != "" {
				t.Errorf("the link is %v, want %s", got.Attrs, want)
			}
			words := w.page(t).ID(t, "back").Words()
			if !strings.HasSuffix(words, host) || !strings.HasPrefix(words, "Back to corner-cafe") || strings.Contains(words, "without paying") != story.pays {
				t.Errorf("the link reads %q", words)
			}
		})
	}
}

func TestBackToAHostThatIsNotAllowed(t *testing.T) {
	w := newWorld()
	w.invoice.Details = returns
	w.merchants = shop{merchant: invoice.Merchant{ReturnHosts: []string{"other.example"}}}
	if links := w.page(t).ID(t, "back").Named("a"); len(links) != 0 {
		t.Errorf("the page links to %v, which the merchant's list does not have now", links[0].Attrs)
	}
	w.merchants = shop{merchant: invoice.Merchant{ReturnHosts: []string{"shop.example"}}}
	if links := w.page(t).ID(t, "back").Named("a"); len(links) != 1 {
		t.Error("the page does not link to a host on the list")
	}
}

// TestPageShowsOfTheDetailsTheDescriptionAlone checks that the description is the only detail of an
// invoice that payers see.
func TestPageShowsOfTheDetailsTheDescriptionAlone(t *testing.T) {
	w := newWorld()
	expect.Equal(t, w.page(t).ID(t, "description").Words(), "", "an invoice without a description has")
	w.invoice.Details = invoice.Details{
		Description: "Two <b>espressos</b> & a cake", Reference: "secret-reference", Customer: invoice.Customer{ID: "secret-id", Email: "secret@example.com"},
		Metadata: map[string]string{"secret-key": "secret-value"},
	}
	expect.Equal(t, w.page(t).ID(t, "description").Words(), w.invoice.Details.Description, "the description reads")
	for _, path := range []string{"", "/status", "/check", "/check?tx=0x" + strings.Repeat("1", 64)} {
		answer := w.ask("GET", "/checkout/"+testID+path)
		if answer.Code != http.StatusOK || strings.Contains(answer.Body.String(), "secret") {
			t.Errorf("%q: %d, secret: %t", path, answer.Code, strings.Contains(answer.Body.String(), "secret"))
		}
	}
}

// TestHeldPayment: the payer of a payment that is screened or quarantined sees it as seen, and is not asked to pay
// again, also once the invoice has expired.
func TestHeldPayment(t *testing.T) {
	t.Parallel()
	inv := openInvoice()
	p := invoice.Payment{
		Transfer: invoice.Transfer{Amount: inv.Amount, Position: invoice.Position{BlockNumber: 5, BlockTime: inv.ExpiresAt}},
		ID:       "pay_1", InvoiceID: inv.ID, Status: invoice.Held, Screening: invoice.ScreeningQuarantined, ScreeningReason: "on list A",
	}
	inv = inv.WithPayment(p)
	for _, status := range []invoice.Status{invoice.Open, invoice.Expired} {
		inv.Status = status
		s := pageInput{text: locale.English(), invoice: inv, chain: localChain(), payments: []invoice.Payment{p}, now: inv.ExpiresAt}
		v := newView(s)
		text := fmt.Sprint(v.Text)
		if v.Headline != "Payment seen" || v.Pay != nil || strings.Contains(text, "list A") {
			t.Errorf("%s: %q, %s", status, v.Headline, text)
		}
		expect.Equal(t, v.Received[0].Status, invoice.Pending, "%s: the payment is shown as", status)
		for _, hours := range []int{-1, 1} {
			if err := s.mailable(mailer.Mail{Hours: hours}); !errors.Is(err, mailer.ErrLater) {
				t.Errorf("%s: the reminder after %d hours: %v", status, hours, err)
			}
		}
		if asked := "Please do not pay again"; status == invoice.Expired && !strings.Contains(text, asked) {
			t.Errorf("%s: %s", status, text)
		}
	}
}

// TestCheckOfRejectedPayment: a payer who checks a rejected payment is not asked to claim it.
func TestCheckOfRejectedPayment(t *testing.T) {
	t.Parallel()
	s := pageInput{text: locale.English(), invoice: openInvoice(), chain: localChain()}
	for _, screening := range []invoice.Screening{invoice.ScreeningRejected, ""} {
		p := invoice.Payment{Transfer: invoice.Transfer{Amount: s.invoice.Amount}, Status: invoice.Confirmed, Screening: screening}
		expect.Equal(t, s.resultOfUnattributed(p).Claimable != nil, (screening == ""), "%q can be claimed:", screening)
	}
}
