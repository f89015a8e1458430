package checkout

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/webtest"
	"github.com/quittance/quittance/internal/web/checkout/locale"
)

func (w *world) RefundRecords(_ context.Context, f ledger.RefundFilter) ([]invoice.RefundRecord, error) {
	if f.InvoiceID != w.invoice.ID || f.Status != invoice.RefundConfirmed {
		return nil, w.err
	}
	return w.refunds[:min(len(w.refunds), f.Limit)], w.err
}

// receipt returns the invoice's receipt, parsed.
func (w *world) receipt(t *testing.T, query string) *element {
	t.Helper()
	answer := w.ask(http.MethodGet, "/checkout/"+w.invoice.ID+"/receipt"+query)
	if answer.Code != http.StatusOK {
		t.Fatalf("the receipt's status is %d: %s", answer.Code, answer.Body)
	}
	return webtest.Parse(t, answer.Body.String())
}

// refund returns a confirmed refund.
func refund(amount, block uint64) invoice.RefundRecord {
	p := payment(amount, block, defaultNow+60, invoice.Confirmed)
	p.From, p.To = p.To, p.From
	return invoice.RefundRecord{Status: invoice.RefundConfirmed, Transfer: invoice.Refund{Transfer: p.Transfer, Status: invoice.Confirmed}}
}

// settled counts the payments of the world, as the service does.
func (w *world) settled() {
	inv := w.invoice
	inv.Sums = invoice.Sums{}
	for _, p := range w.payments {
		inv = inv.WithPayment(p)
	}
	w.invoice = inv.Settle(w.payments)
	w.invoice.Sums = invoice.Sums{Tally: w.invoice.Sums.Tally} // the world adds the rest
}

// receipts are the states of a receipt.
var receipts = []struct {
	name   string
	set    func(*world)
	state  receiptState // empty: the invoice has no receipt
	says   []string
	totals []string
}{
	{name: "unpaid", set: func(*world) {}},
	{name: "seen", set: func(w *world) {
		w.payments = []invoice.Payment{payment(4_900_123, 11, defaultNow, invoice.Pending)}
	}},
	{name: "dust", set: func(w *world) {
		dust := payment(1, 11, defaultNow, invoice.Confirmed)
		dust.Method = invoice.ByCalldata
		w.payments = []invoice.Payment{dust}
	}},
	{name: "expired", set: func(w *world) { w.invoice.Status = invoice.Expired }},
	{name: "draft", set: func(w *world) { w.invoice.Status = invoice.Drafted }},
	{"paid", func(w *world) {
		w.payments = []invoice.Payment{payment(4_900_123, 11, defaultNow, invoice.Confirmed)}
	}, receiptPaid, []string{"Paid in full", "0.000123 USDC of the payment marked it as yours."},
		[]string{"Invoice amount 4.90 USDC", "Received 4.900123 USDC"}},
	{"paid exactly", func(w *world) {
		w.payments = []invoice.Payment{payment(4_900_000, 11, defaultNow, invoice.Confirmed)}
	}, receiptPaid, []string{"Paid in full"}, []string{"Invoice amount 4.90 USDC", "Received 4.90 USDC"}},
	{"over", func(w *world) {
		w.payments = []invoice.Payment{payment(6_000_000, 11, defaultNow, invoice.Confirmed)}
	}, receiptPaid, []string{"1.10 USDC too much was received."}, []string{"Invoice amount 4.90 USDC", "Received 6.00 USDC"}},
	{"twice", func(w *world) {
		w.payments = []invoice.Payment{payment(4_900_123, 11, defaultNow, invoice.Confirmed), payment(4_900_123, 12, defaultNow, invoice.Confirmed)}
	}, receiptPaid, []string{"4.900123 USDC too much was received."}, []string{"Invoice amount 4.90 USDC", "Received 9.800246 USDC"}},
	{"within the tolerance", func(w *world) {
		w.invoice.Tolerance = invoice.NewAmount(100_000)
		w.payments = []invoice.Payment{payment(4_850_000, 11, defaultNow, invoice.Confirmed)}
	}, receiptAccepted, []string{"Accepted as paid", "corner-cafe accepted 0.05 USDC less."},
		[]string{"Invoice amount 4.90 USDC", "Received 4.85 USDC"}},
	{"part", func(w *world) {
		w.payments = []invoice.Payment{payment(2_000_000, 11, defaultNow, invoice.Confirmed), payment(1_000_000, 12, defaultNow, invoice.Pending)}
	}, receiptPart, []string{"Paid in part", "1.90 USDC is still due.", "Payments that are not final yet are not listed."},
		[]string{"Invoice amount 4.90 USDC", "Received 2.00 USDC"}},
	{"part, and the rest is not final", func(w *world) {
		w.payments = []invoice.Payment{payment(2_000_000, 11, defaultNow, invoice.Confirmed), payment(2_900_000, 12, defaultNow, invoice.Pending)}
	}, receiptPart, []string{"Paid in part Print Payments that are not final yet are not listed."},
		[]string{"Invoice amount 4.90 USDC", "Received 2.00 USDC"}},
	{"part, expired, the rest late", func(w *world) {
		w.invoice.Status = invoice.Expired
		w.payments = []invoice.Payment{payment(2_000_000, 11, defaultNow, invoice.Confirmed), payment(2_900_000, 12, expires+9, invoice.Confirmed)}
	}, receiptPart, []string{"Paid in part", "2.00 USDC of 4.90 USDC had arrived by 21 September 2026, 14:28:20 UTC.", "2.90 USDC arrived after 21 September 2026, 14:28:20 UTC, too late to count."},
		[]string{"Invoice amount 4.90 USDC", "Received 4.90 USDC"}},
	{"late", func(w *world) {
		w.invoice.Status = invoice.Expired
		w.payments = []invoice.Payment{payment(4_900_123, 11, expires+9, invoice.Confirmed)}
	}, receiptLate, []string{"Paid too late", "too late to count."}, []string{"Invoice amount 4.90 USDC", "Received 4.900123 USDC"}},
	{"late, and too much", func(w *world) {
		w.invoice.Status = invoice.Expired
		w.payments = []invoice.Payment{payment(6_000_000, 11, expires+9, invoice.Confirmed)}
	}, receiptLate, []string{"Paid too late", "too late to count.", "1.10 USDC too much was received."}, []string{"Invoice amount 4.90 USDC", "Received 6.00 USDC"}},
	{"void", func(w *world) {
		w.invoice.Status, w.invoice.ClosedBlock = invoice.Void, 10
		w.payments = []invoice.Payment{payment(4_900_123, 11, defaultNow, invoice.Confirmed)}
	}, receiptVoid, []string{"Invoice canceled"}, []string{"Invoice amount 4.90 USDC", "Received 4.900123 USDC"}},
	{"refunded in part", func(w *world) {
		w.payments = []invoice.Payment{payment(4_900_000, 11, defaultNow, invoice.Confirmed)}
		w.refunds, w.invoice.AmountRefunded = []invoice.RefundRecord{refund(1_500_000, 12)}, invoice.NewAmount(1_500_000)
	}, receiptPaid, []string{"Paid in full", "1.50 USDC was refunded."},
		[]string{"Invoice amount 4.90 USDC", "Received 4.90 USDC", "Refunded 1.50 USDC", "Received less refunds 3.40 USDC"}},
	{"refunded", func(w *world) {
		w.payments = []invoice.Payment{payment(4_900_000, 11, defaultNow, invoice.Confirmed)}
		w.refunds, w.invoice.AmountRefunded = []invoice.RefundRecord{refund(4_900_000, 12)}, invoice.NewAmount(4_900_000)
	}, receiptRefunded, []string{"Refunded", "4.90 USDC was refunded."},
		[]string{"Invoice amount 4.90 USDC", "Received 4.90 USDC", "Refunded 4.90 USDC", "Received less refunds 0.00 USDC"}},
}

func TestReceiptOfEveryState(t *testing.T) {
	for _, story := range receipts {
		t.Run(story.name, func(t *testing.T) {
			w := newWorld()
			story.set(w)
			refunded := w.invoice.AmountRefunded
			w.settled()
			w.invoice.AmountRefunded = refunded
			expect.Equal(t, w.page(t).ID(t, "receipt").Words() != "", (story.state != ""), "the page links to the receipt:")
			if story.state == "" {
				if answer := w.ask(http.MethodGet, "/checkout/"+testID+"/receipt"); answer.Code != http.StatusNotFound || !strings.Contains(answer.Body.String(), "There is no receipt yet") {
					t.Errorf("status %d: %s", answer.Code, answer.Body)
				}
				return
			}
			page := w.receipt(t, "")
			words := page.Words()
			for _, want := range story.says {
				if !strings.Contains(words, want) {
					t.Errorf("the receipt says\n%s\nwithout %q", words, want)
				}
			}
			if !slices.ContainsFunc(page.Named("p"), func(e *element) bool { return e.Attrs["class"] == "state state-"+string(story.state) }) {
				t.Errorf("the state is not %s", story.state)
			}
			var totals []string
			for _, row := range page.Named("tfoot")[0].Named("tr") {
				totals = append(totals, row.Words())
			}
			expect.List(t, totals, story.totals, "the totals are")
			confirmed := len(w.refunds)
			for _, p := range w.payments {
				if p.Status == invoice.Confirmed {
					confirmed++
				}
			}
			if got := len(page.All(func(e *element) bool { return e.Attrs["class"] == "movement" })); got != confirmed {
				t.Errorf("%d payments and refunds are listed, want %d", got, confirmed)
			}
		})
	}
}

// paidWorld returns a world with a paid invoice of a merchant with a profile.
func paidWorld() *world {
	w := newWorld()
	w.merchants = shop{merchant: invoice.Merchant{
		ID: "corner-cafe", Name: "Corner <Café>", Color: "#1a73e8", SupportContact: "help@cafe.example", Statement: "Corner Café Ltd\n1 Main St\nVAT GB 123",
		Logo: &invoice.Logo{SHA256: "abc", Width: 40, Height: 20},
	}}
	w.invoice.Details = invoice.Details{Reference: "order-10017", Description: "Breakfast for <two>", Customer: invoice.Customer{Email: "secret@example.com"}, Metadata: map[string]string{"k": "secret"}}
	w.payments = []invoice.Payment{payment(4_900_123, 10, defaultNow, invoice.Confirmed)}
	w.settled()
	return w
}

// TestReceiptHasWhatAnAccountantNeeds looks for each fact, and checks that payers see no other.
func TestReceiptHasWhatAnAccountantNeeds(t *testing.T) {
	w := paidWorld()
	if german := w.receipt(t, "?lang=de").Words(); !strings.Contains(german, "Flat white 3,40") || !strings.Contains(german, "4,900123 USDC") {
		t.Errorf("in German, the receipt says\n%s", german)
	}
	words := w.receipt(t, "").Words()
	for _, want := range []string{
		"Corner <Café>", "Corner Café Ltd 1 Main St VAT GB 123", "help@cafe.example", testID, "order-10017", "Breakfast for <two>",
		"Flat white 3.40", "Cinnamon bun 1.50", "4.90 USDC", "21 September 2026, 14:13:20 UTC", "21 September 2026, 14:28:20 UTC", "21 September 2026, 14:13:27 UTC",
		w.payments[0].TxHash.String(), "Block 10, confirmations: 3", chain.Checksum(payerAddress), chain.Checksum(merchantAddress), chain.Checksum(tokenAddress),
		"Local test chain", w.invoice.CommitmentID.String(), chain.Checksum(registryAddress), "http://pay.example/checkout/" + testID + "/terms",
	} {
		if !strings.Contains(words, want) {
			t.Errorf("the receipt lacks %q:\n%s", want, words)
		}
	}
	if strings.Contains(words, "secret") {
		t.Error("the receipt shows what payers do not see")
	}
}

// TestReceiptCode opens the URL in the QR code. It confirms the code of the invoice, and no other.
func TestReceiptCode(t *testing.T) {
	w := paidWorld()
	var link string
	for _, a := range w.receipt(t, "").Named("a") {
		if strings.Contains(a.Attrs["href"], "?check=") {
			link = a.Attrs["href"]
		}
	}
	u, err := url.Parse(link)
	if err != nil || u.Host != "pay.example" || u.Scheme != "http" || u.Path != "/checkout/"+testID+"/receipt" {
		t.Fatalf("the code leads to %q", link)
	}
	verdict := func(query string) string {
		for _, p := range w.receipt(t, query).Named("p") {
			if p.Attrs["role"] != "" {
				return p.Words()
			}
		}
		return ""
	}
	for query, want := range map[string]string{
		"?" + u.RawQuery: "The code belongs to this receipt.", "": "",
		"?check=0x" + strings.Repeat("0", 64): "The code does not belong to this receipt.", "?check=x": "The code does not belong",
	} {
		if got := verdict(query); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%q says %q, want %q", query, got, want)
		}
	}
	w.publicURL = "https://pay.example.com"
	if words := w.receipt(t, "").Words(); !strings.Contains(words, "https://pay.example.com/checkout/"+testID+"/terms") {
		t.Error("the receipt does not have the public URL")
	}
}

// TestReceiptListsAreBounded makes more payments than a receipt lists.
func TestReceiptListsAreBounded(t *testing.T) {
	for _, n := range []int{MaxReceiptRows, MaxReceiptRows + 1} {
		w := newWorld()
		for i := range n {
			w.payments = append(w.payments, payment(4_900_000, uint64(i+1), defaultNow, invoice.Confirmed))
		}
		w.settled()
		page := w.receipt(t, "")
		if got := len(page.All(func(e *element) bool { return e.Attrs["class"] == "movement" })); got != MaxReceiptRows {
			t.Errorf("%d of %d payments are listed", got, n)
		}
		if more := strings.Contains(page.Words(), "And 1 earlier."); more != (n > MaxReceiptRows) {
			t.Errorf("of %d payments, one is left out: %t", n, more)
		}
	}
}

// mails is a fake of Mails that records them.
type mails struct {
	Mails
	queued []string
	err    error
}

func (m *mails) Queue(_ context.Context, invoiceID, language, address string) error {
	m.queued = append(m.queued, invoiceID+" "+language+" "+address)
	return m.err
}

// TestReceiptKeepsItsCode expects the receipt in another language to judge the scanned code, too.
func TestReceiptKeepsItsCode(t *testing.T) {
	if links := paidWorld().receipt(t, "?check=x&lang=en").Links(); !slices.Contains(links, "?check=x&lang=de") {
		t.Errorf("the receipt leads to %q", links)
	}
}

// TestMailForm asks for the receipt by e-mail.
func TestMailForm(t *testing.T) {
	w := paidWorld()
	expect.Equal(t, len(w.receipt(t, "").Posts()), 0, "without a server there are … forms:")
	sent := &mails{}
	w.mails, w.publicURL = sent, "https://pay.example.com"
	form := w.receipt(t, "").Posts()
	if len(form) != 1 || form[0].Attrs["action"] != "/checkout/"+testID+"/receipt?lang=en" {
		t.Fatalf("%d forms", len(form))
	}
	h := w.handler()
	post := func(client, address string, header ...string) *httptest.ResponseRecorder {
		return postForm(h, client, form[0].Attrs["action"], url.Values{"email": {address}}, header...)
	}
	answer := post("203.0.113.1:1", " ada@example.com ")
	if answer.Code != http.StatusSeeOther || answer.Header().Get("Location") != "/checkout/"+testID+"/receipt?mail=sent&lang=en" ||
		!slices.Equal(sent.queued, []string{testID + " en ada@example.com"}) {
		t.Errorf("%d to %q, queued %q", answer.Code, answer.Header().Get("Location"), sent.queued)
	}
	if words := w.receipt(t, "?mail=sent").Words(); !strings.Contains(words, "on its way") {
		t.Error("the page does not say that the mail is sent")
	}
	for _, c := range []struct {
		err    error
		status int
		says   string
	}{
		{mailer.ErrAddress, http.StatusBadRequest, "This is not an e-mail address."},
		{mailer.ErrTooMany, http.StatusTooManyRequests, "Sent too often"},
		{mailer.ErrBusy, http.StatusServiceUnavailable, "busy"},
	} {
		sent.err = c.err
		address := "ada@example.com"
		if errors.Is(c.err, mailer.ErrAddress) {
			address = `ada"@example`
		}
		if answer := post("203.0.113.2:1", address); answer.Code != c.status || !strings.Contains(answer.Body.String(), c.says) {
			t.Errorf("%v: %d %s", c.err, answer.Code, answer.Body)
		}
	}
	if answer := post("203.0.113.3:1", "ada@example.com", "Origin", "https://evil.example"); answer.Code != http.StatusForbidden {
		t.Errorf("from another origin: %d", answer.Code)
	}
}

// TestMailsAreLimited asks for more mails than a client may, and then than the merchant gets.
func TestMailsAreLimited(t *testing.T) {
	w := paidWorld()
	sent := &mails{}
	w.mails, w.publicURL = sent, "https://pay.example.com"
	h := w.handler()
	asks := func(client string, want int) {
		t.Helper()
		if got := postForm(h, client, "/checkout/"+testID+"/receipt", url.Values{"email": {"ada@example.com"}}).Code; got != want {
			t.Errorf("%s is answered %d, want %d", client, got, want)
		}
	}
	for range AllMails { // they do not count
		invalid := postForm(h, "203.0.113.1:1", "/checkout/"+testID+"/receipt", url.Values{"email": {"ada@"}})
		expect.Equal(t, invalid.Code, http.StatusBadRequest, "an invalid address is answered")
	}
	for range MailsOfClient {
		asks("203.0.113.1:1", http.StatusSeeOther)
	}
	asks("203.0.113.1:2", http.StatusTooManyRequests)
	const share = AllMails / 2 // of the merchant
	for i := range share - MailsOfClient {
		asks(fmt.Sprintf("203.0.114.%d:1", i), http.StatusSeeOther)
	}
	asks("203.0.115.1:1", http.StatusTooManyRequests)
	expect.Len(t, sent.queued, share, "mails were queued:")
}

// TestReceiptMail checks both parts of a mail.
func TestReceiptMail(t *testing.T) {
	w := paidWorld()
	w.publicURL = "https://pay.example.com"
	got, err := w.checkout().Mail(t.Context(), mailer.Mail{InvoiceID: testID, Kind: mailer.Receipt, Language: "en"})
	expect.OK(t, err)
	expect.Equal(t, got.Subject, "Receipt: 4.90\u00a0USDC to Corner <Café>", "the subject is")
	link := "https://pay.example.com/checkout/" + testID + "/receipt?check=" + w.invoice.CommitmentID.String()
	html := webtest.Parse(t, got.HTML).Words()
	for _, want := range []string{"Paid in full", "Corner <Café>", "VAT GB 123", "order-10017", "Flat white", "4.900123\u00a0USDC", w.payments[0].TxHash.String()} {
		if !strings.Contains(got.Text, want) || !strings.Contains(html, strings.ReplaceAll(want, "\u00a0", " ")) {
			t.Errorf("the mail lacks %q:\n%s", want, got.Text)
		}
	}
	if !strings.Contains(got.Text, link) || !strings.Contains(got.HTML, link) {
		t.Error("the mail does not link to the receipt")
	}
	for _, loaded := range []string{"<img", "<link", "<script", "url("} {
		if strings.Contains(got.HTML, loaded) {
			t.Errorf("the mail has %s", loaded)
		}
	}
	if _, err := w.checkout().Mail(t.Context(), mailer.Mail{InvoiceID: "inv_none", Kind: mailer.Receipt, Language: "en"}); err == nil {
		t.Error("an unknown invoice has a mail")
	}
}

// TestReceiptLinks expects each payment and refund to link to the block explorer, and a button
// that prints, which only scripts show.
func TestReceiptLinks(t *testing.T) {
	w := newWorld()
	w.payments = []invoice.Payment{payment(4_900_000, 11, defaultNow, invoice.Confirmed)}
	w.refunds = []invoice.RefundRecord{refund(1_500_000, 12)}
	w.settled()
	for explorer, want := range map[string]int{"": 0, "https://scan.example": 2} {
		w.chain.Explorer = explorer
		page := w.receipt(t, "")
		links := page.All(func(e *element) bool {
			return e.Name == "a" && e.Attrs["class"] == "out onscreen" && strings.HasPrefix(e.Attrs["href"], "https://scan.example/tx/0x")
		})
		expect.Len(t, links, want, "with the explorer %q it has … links:", explorer)
		if _, hidden := page.ID(t, "print").Attrs["hidden"]; !hidden {
			t.Error("without scripts it has a button that does nothing")
		}
	}
}

// TestMailsOfEveryState composes an invoice, a reminder before the end of the time to pay and one after it, in every
// state of an invoice.
func TestMailsOfEveryState(t *testing.T) {
	part := payment(2_000_000, 11, defaultNow, invoice.Confirmed)
	pending := payment(2_000_000, 11, defaultNow, invoice.Pending)
	dust := payment(1, 11, defaultNow, invoice.Pending)
	dust.Method = invoice.ByCalldata
	late := payment(4_900_123, 11, expires+9, invoice.Confirmed)
	full := payment(4_900_123, 11, defaultNow, invoice.Pending)
	unwanted, later := mailer.ErrUnwanted, mailer.ErrLater
	for _, c := range []struct {
		name                   string
		set                    func(*world)
		invoice, before, after error
	}{
		{"waiting", func(*world) {}, nil, nil, later},
		{"dust", func(w *world) { w.payments = []invoice.Payment{dust} }, nil, nil, later},
		{"part", func(w *world) { w.payments = []invoice.Payment{part} }, nil, nil, later},
		{"part, pending", func(w *world) { w.payments = []invoice.Payment{pending} }, later, later, later},
		{"all, pending", func(w *world) { w.payments = []invoice.Payment{full} }, later, later, later},
		{"blocks are missing", func(w *world) { w.now = expires + 1 }, later, later, later},
		{"paid", func(w *world) { w.invoice.Status = invoice.Paid }, unwanted, unwanted, unwanted},
		{"void", func(w *world) { w.invoice.Status = invoice.Void }, unwanted, unwanted, unwanted},
		{"draft", func(w *world) { w.invoice.Status = invoice.Drafted }, unwanted, unwanted, unwanted},
		{"expired", func(w *world) { w.invoice.Status = invoice.Expired }, unwanted, unwanted, nil},
		{"expired, paid late", func(w *world) {
			w.invoice.Status, w.invoice.Exception, w.payments = invoice.Expired, invoice.Late, []invoice.Payment{late}
		}, unwanted, unwanted, unwanted},
		{"to another address", func(w *world) { w.invoice.Details.Customer.Email = "bob@example.com" }, nil, unwanted, unwanted},
		{"waived", func(w *world) { w.invoice.Status, w.waived = invoice.Expired, true }, unwanted, unwanted, unwanted},
	} {
		w := newWorld()
		w.invoice.Details.Customer.Email = "ada@example.com"
		c.set(w)
		for _, m := range []struct {
			hours int
			want  error
		}{{0, c.invoice}, {-2, c.before}, {2, c.after}} {
			mail := mailer.Mail{InvoiceID: testID, Kind: mailer.Invoice, Hours: m.hours, Language: "en", Recipient: "Ada@example.com"}
			expect.Error(t, m.want, "%s, %d hours", c.name, m.hours)(w.checkout().Mail(t.Context(), mail))
		}
	}
}

// TestInvoiceMail checks both parts of an invoice and of a reminder after the time to pay has ended, and that every
// language has them.
func TestInvoiceMail(t *testing.T) {
	w := newWorld()
	w.merchants = shop{merchant: invoice.Merchant{ID: "corner-cafe", Name: "Corner <Café>", SupportContact: "help@cafe.example"}}
	w.publicURL = "https://pay.example.com"
	w.invoice.Details.Description, w.invoice.Details.Customer.Email = "Breakfast for <two>", "ada@example.com"
	compose := func(hours int, lang string) mailer.Message {
		t.Helper()
		got, err := w.checkout().Mail(t.Context(), mailer.Mail{
			InvoiceID: testID, Kind: mailer.Invoice, Hours: hours, Language: lang, Recipient: "ada@example.com", Token: "abcdefghijklmnopqrstuvwxyz",
		})
		expect.OK(t, err)
		if got.ReplyTo != "help@cafe.example" || !strings.HasPrefix(got.StopURL, "https://pay.example.com/mails/abc") {
			t.Errorf("the mail has %q and %q", got.ReplyTo, got.StopURL)
		}
		return got
	}
	wants := func(got mailer.Message, says ...string) {
		t.Helper()
		html := webtest.Parse(t, got.HTML).Words()
		for _, want := range says {
			if !strings.Contains(got.Text, want) || !strings.Contains(html, strings.ReplaceAll(want, "\u00a0", " ")) && !strings.Contains(got.HTML, want) {
				t.Errorf("the mail lacks %q:\n%s\n%s", want, got.Text, html)
			}
		}
		if strings.Contains(got.HTML, "<two>") || strings.Contains(got.Text, merchantAddress.String()) {
			t.Errorf("the mail is %s", got.HTML)
		}
	}
	wants(compose(0, "en"), "Corner <Café> asks you to pay 4.90\u00a0USDC by ", "Breakfast for <two>", "https://pay.example.com/checkout/"+testID+"?lang=en", "ada@example.com")
	w.payments = []invoice.Payment{payment(2_000_000, 11, defaultNow, invoice.Confirmed)}
	wants(compose(-1, "de"), "bittet Sie um die Zahlung von 2,90\u00a0USDC", "?lang=de")
	w.payments, w.invoice.Status, w.now = nil, invoice.Expired, expires+3600
	wants(compose(1, "en"), "No payment had arrived by", "Please send nothing now.", "ask Corner <Café> for a new invoice")
	for _, text := range locale.Languages() {
		if got := compose(1, text.Lang()); strings.Contains(got.Text+got.Subject, "{{") || !strings.Contains(got.HTML, `lang="`+text.Lang()+`"`) {
			t.Errorf("%s: %s", text.Lang(), got.Text)
		}
	}
}
