package walk_test

import (
	"encoding/csv"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/test/expect"
)

// account is the way of an accountant who closes a month.
func account(w *walk) {
	network := w.world()
	var link string
	w.pause(func() { link = network.month() })
	w.steps = 0

	w.open(link, network.fox(network.Info.Merchant.PrivateKey))
	w.click("Sign in", "")
	w.look("home")
	before := w.statement()
	w.click("Payments", "")
	w.look("payments")
	w.matches(before["Received"])
	short := w.read(`(0x[0-9a-f]+…[0-9a-f]+)`)
	for _, by := range [][2]string{{"hash", short}, {"amount", "7.25"}, {"e-mail", "maria@cafe.example"}, {"word", "wedding"}} {
		w.search(by[0], by[1])
	}
	w.refund("7.25.* USDC", "1.50")

	after := w.statement()
	if refunded := new(big.Rat).Sub(after["Refunded"], before["Refunded"]); refunded.Cmp(big.NewRat(3, 2)) != 0 {
		w.stuck("the statement has %s refunded more than before, want 1.50", refunded.FloatString(6))
	}
	w.click("Refunds", "")
	w.look("refunds")
	w.matches(after["Refunded"])
}

// month makes the month's invoices, and a link that signs the accountant in.
func (n *network) month() (link string) {
	n.w.Helper()
	api := expect.Must(client.New(n.Info.BaseURL))
	for i, sale := range [][3]string{ // nobody pays the last
		{"4900000", "Coffee", "juan@shop.example"}, {"7250000", "Flowers for a wedding", "maria@cafe.example"},
		{"12500000", "Cakes", "li@bar.example"}, {"3000000", "Tea", "ida@inn.example"},
	} {
		made, err := api.CreateInvoice(n.w.Context(), apitypes.CreateInvoiceRequest{
			MerchantID: n.Info.Merchant.ID, MerchantAddress: n.Info.Merchant.Address, Amount: sale[0], Currency: "USDC", ChainKey: n.Info.Chain.ChainKey,
			ExpiresAt: time.Now().Add(time.Hour).Unix(), Reference: fmt.Sprintf("order-%d", 10017+i), Description: sale[1], Customer: &apitypes.Customer{Email: sale[2]},
		})
		expect.OK(n.w, err)
		if i == 3 {
			break
		}
		units, _ := new(big.Rat).SetString(made.Invoice.TransferAmount + "/1000000")
		n.transfer(n.Info.Merchant.Address, units.FloatString(6))
		if !n.w.await(func() bool {
			inv, err := api.Invoice(n.w.Context(), made.ID)
			return err == nil && inv.Status == apitypes.StatusPaid
		}) {
			n.w.Fatalf("%s is not paid", made.ID)
		}
	}
	key, _, err := api.CreateKey(n.w.Context(), apitypes.CreateKeyRequest{Name: "Ida", MerchantID: n.Info.Merchant.ID, Scopes: []string{access.PresetFinance}})
	if err == nil {
		link, _, err = api.CreateSignInLink(n.w.Context(), key.ID)
	}
	expect.OK(n.w, err)
	return link
}

// statement opens the statement of this month, checks that both accounts add up, and returns the exact figures by name.
func (w *walk) statement() map[string]*big.Rat {
	w.Helper()
	w.click("Statement", "")
	if month := time.Now().UTC().Format("2006-01"); w.eval("return v.field('Month').value") != month {
		w.fill("Month", month)
		w.click("Show", "")
	}
	w.look("statement")
	var shown map[string]string
	w.page.Eval(`Object.fromEntries([...document.querySelectorAll(".account tr")].map((r) => {
		return [r.cells[0].innerText.replace(/^[+−] | \(.*/g, ""), r.cells[1].querySelector("[title]")?.title ?? r.cells[1].innerText];
	}))`, &shown)
	figures := make(map[string]*big.Rat)
	for name, text := range shown {
		figures[name], _ = new(big.Rat).SetString(regexp.MustCompile(`[^0-9.]`).ReplaceAllString(text, ""))
	}
	for _, account := range [][]string{
		{"Owed before", "Invoiced", "-Paid toward invoices", "-Canceled", "-Expired unpaid", "-Waived within the tolerance", "-Owed after"},
		{"Received and not refunded before", "Received", "-Refunded", "-Received and not refunded after"},
	} {
		total := new(big.Rat)
		for _, name := range account {
			value, minus := figures[strings.TrimPrefix(name, "-")], strings.HasPrefix(name, "-")
			if value == nil {
				w.lost("has no figure %q: %v", name, shown)
			}
			if minus {
				value = new(big.Rat).Neg(value)
			}
			total.Add(total, value)
		}
		if total.Sign() != 0 {
			w.stuck("the account does not add up: %v of %v", account, shown)
		}
	}
	return figures
}

// matches downloads the list that is shown, and compares its sum with a figure of the statement.
func (w *walk) matches(figure *big.Rat) {
	w.Helper()
	export := w.download("CSV")
	rows, err := csv.NewReader(strings.NewReader(export)).ReadAll()
	total := new(big.Rat)
	for _, row := range rows {
		if i := slices.Index(rows[0], "amountDecimal"); i >= 0 {
			if value, ok := new(big.Rat).SetString(row[i]); ok {
				total.Add(total, value)
			}
		}
	}
	if err != nil || total.Cmp(figure) != 0 {
		w.stuck("the export of %s adds up to %s, and the statement has %s (%v)\n%s", w.where(), total.FloatString(6), figure.FloatString(6), err, export)
	}
}

// search finds the invoice over 7.25 USDC, or a payment by its hash.
func (w *walk) search(what, text string) {
	w.Helper()
	w.fill("Search by", text)
	w.steps++
	w.page.Eval("void (window.walked = document.querySelector('[role=search]').requestSubmit() ?? true)", nil)
	if !w.page.Becomes("!window.walked && document.readyState === 'complete'", patience) || !w.sees(0, "v.found(%q)", `\d\.\d\d\S* USDC`) {
		w.stuck("the search by %s does not find %s", what, text)
	}
	w.look("search by " + what)
}
