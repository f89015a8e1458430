package repotest_test

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// moneyPackages are those that compute, store or show amounts of money.
var moneyPackages = []string{
	"apitypes", "client", "internal/web/api", "internal/apiconv", "internal/web/checkout", "internal/invoice", "internal/report", "internal/ledger", "internal/access", "internal/db",
}

// TestMoneyIsNoFloat rejects floating-point numbers in the packages that deal with money, and in SQL.
func TestMoneyIsNoFloat(t *testing.T) {
	t.Parallel()
	eachGoFile(t, func(name string, set *token.FileSet, file *ast.File) {
		if strings.HasSuffix(name, "_test.go") || !slices.Contains(moneyPackages, path.Dir(name)) && !strings.HasSuffix(name, "_sql.go") {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && (id.Name == "float64" || id.Name == "float32") {
				t.Errorf("%s: %s; amounts are invoice.Amount", set.Position(id.Pos()), id.Name)
			}
			return true
		})
	})
}
