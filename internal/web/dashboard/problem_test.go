package dashboard

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

// TestProblemsWithNumbers explains problems that name times and amounts to a person in Berlin who reads German.
func TestProblemsWithNumbers(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Europe/Berlin")
	expect.OK(t, err)
	v := &visit{text: texts().Named("de"), zone: zone, chains: map[string]chain.Chain{"house": {Key: "house", Tokens: []chain.Token{{Currency: "USDC", Decimals: 6}}}}}
	for _, c := range []struct {
		code                apitypes.ErrorCode
		field, detail, want string
	}{
		{apitypes.CodeInvalidField, "expiresAt", "expiresAt must lie in the future; it is 1764313200 and the time is 1764316800.", "Expires at must lie in the future; it is 28.11.2025, 08:00 CET and the time is 28.11.2025, 09:00 CET."},
		{apitypes.CodeInvalidField, "lineItems", "lineItems must add up to amount; they add up to 1500000 and amount is 12345600000.", "Line items must add up to amount; they add up to 1,50 and amount is 12.345,60."},
		{apitypes.CodeInvalidField, "lineItems", "lineItems must be at most 100 items; there are 101.", "Line items must be at most 100 items; there are 101."},
		{apitypes.CodeInvalidField, "maxAmount", "maxAmount must not be below minAmount; it is 1 and minAmount is 20000000.", "Max amount must not be below min amount; it is 0,000001 and min amount is 20,00."},
		{apitypes.CodeInvalidField, "amount", "amount " + invoice.ErrAmountSyntax.Error() + ".", "Amount must be an amount such as 12,50."},
		{apitypes.CodeInvalidField, "lineItems[2].label", `lineItems[2].label is wrong: "1764313200 returnHosts".`, `Line item 3 label is wrong: "1764313200 returnHosts".`},
		{apitypes.CodeInvalidField, "", "confirmedAfter must be Unix seconds or a date such as 2026-11-30.", "Confirmed after must be a date such as 2026-11-30."},
		{apitypes.CodeAlreadyDecided, "", "maria has dismissed this at 2026-11-28T09:00:00Z, because: order myShop 1764313200. Undo it.", "maria has dismissed this at 28.11.2026, 10:00 CET, because: order myShop 1764313200. Undo it."},
		{apitypes.CodeRefundNotOpen, "", "The state of this refund does not allow that.", "Der Zustand dieser Erstattung lässt das nicht zu."},
	} {
		if got := v.explain(apitypes.Problem{Code: c.code, Field: c.field, Detail: c.detail}); got != c.want {
			t.Errorf("%s\nis shown as %s\nwant        %s", c.detail, got, c.want)
		}
	}
}

var (
	verb     = regexp.MustCompile(`%[-+#.0-9\[\]]*[a-zA-Z]`)
	forCode  = regexp.MustCompile(`[a-z]+[A-Z]\w*|minor units|Unix|\b\d{10}\b`)
	packages = []string{"web/api", "invoice", "ledger", "access", "webhooks"}
)

// TestProblemsAreForPeople explains the details of all problems in the source code of the interface. None of them may
// show a person a path of a field or a unit of the interface.
func TestProblemsAreForPeople(t *testing.T) {
	t.Parallel()
	v := &visit{text: texts().English()}
	found := 0
	for _, field := range details(t) {
		found++
		name, detail := field[0], strings.ReplaceAll(field[1], "%q", `"x"`)
		if strings.Contains(detail, "it is %d and the time is %d") {
			detail = strings.ReplaceAll(detail, "%d", "1764313200")
		}
		detail = verb.ReplaceAllString(detail, "7")
		if name != "" {
			detail = name + " " + detail
		}
		shown := v.explain(apitypes.Problem{Code: apitypes.CodeInvalidField, Field: name, Detail: detail})
		parts := strings.Split(shown, `"`)
		for i := 0; i < len(parts); i += 2 {
			if bad := forCode.FindString(parts[i]); bad != "" && bad != "xn" {
				t.Errorf("%q is shown in %s", bad, shown)
			}
		}
	}
	const least = 150
	if found < least {
		t.Errorf("only %d details were found, want at least %d", found, least)
	}
}

// details returns the fields and the details of the problems in the source code of packages.
func details(t *testing.T) (all [][2]string) {
	t.Helper()
	for _, dir := range packages {
		files, err := filepath.Glob(filepath.Join(testdeps.Repo("internal"), dir, "*.go"))
		expect.OK(t, err)
		for _, name := range files {
			body, err := os.ReadFile(name)
			expect.OK(t, err)
			file, err := parser.ParseFile(token.NewFileSet(), name, body, parser.SkipObjectResolution)
			expect.OK(t, err)
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			ast.Inspect(file, func(n ast.Node) bool {
				all = append(all, detailsOf(n)...)
				return true
			})
		}
	}
	return all
}

// detailsOf returns the detail that a call or a literal makes.
func detailsOf(n ast.Node) [][2]string {
	switch n := n.(type) {
	case *ast.CallExpr:
		name := ""
		switch fun := n.Fun.(type) {
		case *ast.Ident:
			name = fun.Name
		case *ast.SelectorExpr:
			name = fun.Sel.Name
		}
		if (name == "fieldErrorf" || name == "invalidField" || name == "reject") && len(n.Args) > 1 && literal(n.Args[1]) != "" {
			field := literal(n.Args[0])
			if field == "" {
				field = "someField"
			}
			return [][2]string{{field, literal(n.Args[1])}}
		}
	case *ast.CompositeLit:
		if len(n.Elts) == 3 && literal(n.Elts[2]) != "" { // of problems
			if code, ok := n.Elts[1].(*ast.SelectorExpr); ok && strings.HasPrefix(code.Sel.Name, "Code") {
				return [][2]string{{"", literal(n.Elts[2])}}
			}
		}
	}
	return nil
}

// literal returns the text of a string literal, or "".
func literal(e ast.Expr) string {
	if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
		text, _ := strconv.Unquote(l.Value)
		return text
	}
	return ""
}
