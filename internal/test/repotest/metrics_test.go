package repotest_test

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMetricsAreDocumented compares the metrics that the code declares, and
// their labels, with the table in docs/operations.md.
func TestMetricsAreDocumented(t *testing.T) {
	declared := make(map[string]string)
	eachGoFile(t, func(name string, _ *token.FileSet, file *ast.File) {
		if strings.HasSuffix(name, "_test.go") {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if metric, labels := declaration(file, call); metric != "" {
					declared[metric] = strings.Join(labels, ", ")
				}
			}
			return true
		})
	})
	documented := make(map[string]string)
	row := regexp.MustCompile("(?m)^\\| `(quittance_[a-z_]+)` \\| ([a-z, ]*?) *\\|")
	for _, found := range row.FindAllStringSubmatch(read(t, "docs/operations.md"), -1) {
		documented[found[1]] = found[2]
	}
	if diff := cmp.Diff(declared, documented); diff != "" {
		t.Errorf("metrics and their labels in the code (-) and in docs/operations.md (+):\n%s", diff)
	}
}

var metricName = regexp.MustCompile(`^quittance_[a-z_]+$`)

// declaration returns the name and the labels of the metric that a call of package prometheus
// declares, and "" if it declares no metric.
func declaration(file *ast.File, call *ast.CallExpr) (name string, labels []string) {
	if len(call.Args) == 0 {
		return "", nil
	}
	switch first := call.Args[0].(type) {
	case *ast.BasicLit: // NewDesc(name, help, labels, nil)
		if name = constant(first); metricName.MatchString(name) && len(call.Args) == 4 {
			return name, texts(file, call.Args[2])
		}
	case *ast.CompositeLit: // NewGaugeVec(GaugeOpts{Name: name}, labels)
		for _, text := range texts(file, first) {
			if !metricName.MatchString(text) {
				continue
			}
			if len(call.Args) == 2 {
				if _, function := call.Args[1].(*ast.FuncLit); !function {
					labels = texts(file, call.Args[1])
				}
			}
			return text, labels
		}
	}
	return "", nil
}

// texts returns the strings in an expression, including strings of the file's variables.
func texts(file *ast.File, expr ast.Expr) (found []string) {
	ast.Inspect(expr, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				found = append(found, constant(n))
			}
		case *ast.Ident:
			if value := variable(file, n.Name); value != nil {
				found = append(found, texts(file, value)...)
			}
		}
		return true
	})
	return found
}

// variable returns the value of a variable that is declared in the file, in a specification without
// other variables, or nil.
func variable(file *ast.File, name string) ast.Expr {
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.VAR {
			continue
		}
		for _, spec := range gen.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok && len(v.Values) == 1 && v.Names[0].Name == name {
				return v.Values[0]
			}
		}
	}
	return nil
}

// constant returns the text of a string literal.
func constant(literal *ast.BasicLit) string {
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return text
}
