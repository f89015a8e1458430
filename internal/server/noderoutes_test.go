package server

import (
	"go/ast"
	"go/token"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/test/testdeps"
)

// callsOfNodes are the calls by which handlers of each package reach nodes, written as the end of the
// called expression. The dashboard calls the API: for it, a path argument follows.
var callsOfNodes = map[string][]string{
	"api":       {".Nodes.Account", ".Nodes.RefundTransaction", ".Nodes.HasWaiting", ".Ledger.Authorize", ".Facilitator.Verify", ".Facilitator.Settle", ".Facilitator.Pay", ".Facilitator.Requirements"},
	"checkout":  {".Inspector.Transaction", ".Inspector.IsReplaced", ".Refunds.Account", ".X402.ServeHTTP"},
	"dashboard": {`.service.create "/refunds"`, `.submission "/withdraw"`},
}

// TestNodeRoutes follows the calls of the handlers of all routes. Exactly those that reach a node have
// CallsNodes.
func TestNodeRoutes(t *testing.T) {
	t.Parallel()
	table, _ := testTable(t)
	var found, declared []string
	for pkg, calls := range callsOfNodes {
		found = append(found, routesThatCall(t, pkg, calls)...)
	}
	for _, r := range table {
		if r.CallsNodes {
			declared = append(declared, r.Pattern)
		}
	}
	slices.Sort(found)
	slices.Sort(declared)
	if diff := cmp.Diff(found, declared); diff != "" {
		t.Errorf("routes with handlers that reach a node (-) and with CallsNodes (+):\n%s", diff)
	}
}

// routesThatCall returns the routes of a package with handlers that make one of the calls, directly or
// through functions of the package.
func routesThatCall(t *testing.T, pkg string, calls []string) []string {
	t.Helper()
	files, err := filepath.Glob(testdeps.Repo("internal/web/" + pkg + "/*.go"))
	if err != nil {
		t.Fatal(err)
	}
	bodies, constants := make(map[string]*ast.BlockStmt), make(map[string]string)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed := parseFile(t, file)
		maps.Copy(constants, constantsOf(parsed))
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				bodies[f.Name.Name] = f.Body
			}
		}
	}
	handlers := make(map[string]string) // of patterns
	for _, body := range bodies {
		maps.Copy(handlers, handlersIn(body, constants))
	}
	reaches := reaching(bodies, calls)
	var found []string
	for pattern, handler := range handlers {
		if reaches[handler] {
			found = append(found, pattern)
		}
	}
	if len(handlers) == 0 || len(found) == 0 {
		t.Errorf("%d routes of package %s were found, and %d that call nodes", len(handlers), pkg, len(found))
	}
	return found
}

// reaching returns the functions that make one of the calls, directly or through others.
func reaching(bodies map[string]*ast.BlockStmt, calls []string) map[string]bool {
	reaches := make(map[string]bool)
	for grows := true; grows; {
		grows = false
		for name, body := range bodies {
			if reaches[name] {
				continue
			}
			ast.Inspect(body, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					text := dotted(call.Fun)
					last := text[strings.LastIndex(text, ".")+1:]
					own := strings.Count(text, ".") <= 1 || strings.HasSuffix(text, ".lookups."+last)
					if own && reaches[last] || slices.ContainsFunc(calls, func(c string) bool { return makes(call, text, c) }) {
						reaches[name] = true
					}
				}
				return true
			})
			grows = grows || reaches[name]
		}
	}
	return reaches
}

// makes reports whether a call of the function text is one of callsOfNodes.
func makes(call *ast.CallExpr, text, want string) bool {
	function, argument, _ := strings.Cut(want, " ")
	if !strings.HasSuffix(text, function) {
		return false
	}
	found := argument == ""
	ast.Inspect(call, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		found = found || ok && literal.Value == argument
		return true
	})
	return found
}

// dotted returns an expression such as a.b.c as text, and "" for others.
func dotted(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return dotted(e.X) + "." + e.Sel.Name
	}
	return ""
}

// handlersIn returns the names of the handlers by the patterns of the routes that a function
// lists, such as a.route(pattern, scope, a.handler, options…).
func handlersIn(body *ast.BlockStmt, constants map[string]string) map[string]string {
	found := make(map[string]string)
	local := maps.Clone(constants)
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for i, value := range n.Values {
				local[n.Names[i].Name] = textOf(value, local)
			}
		case *ast.CallExpr:
			if !strings.HasSuffix(dotted(n.Fun), ".route") || len(n.Args) < 2 {
				return true
			}
			pattern := textOf(n.Args[0], local)
			for _, arg := range n.Args[1:] {
				if name := dotted(arg); strings.Count(name, ".") == 1 && len(name) > 2 && name[1] == '.' && found[pattern] == "" {
					found[pattern] = name[2:] // a method of the one-letter receiver
				}
			}
		}
		return true
	})
	return found
}

// constantsOf returns the texts of a file's constants.
func constantsOf(f *ast.File) map[string]string {
	found := make(map[string]string)
	for _, d := range f.Decls {
		if constants, ok := d.(*ast.GenDecl); ok && constants.Tok == token.CONST {
			for _, spec := range constants.Specs {
				named := spec.(*ast.ValueSpec)
				for i, value := range named.Values {
					found[named.Names[i].Name] = textOf(value, found)
				}
			}
		}
	}
	return found
}

// textOf returns the text of an expression of literals and constants.
func textOf(e ast.Expr, constants map[string]string) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value) // "" for numbers
		return text
	case *ast.Ident:
		return constants[e.Name]
	case *ast.BinaryExpr:
		return textOf(e.X, constants) + textOf(e.Y, constants)
	}
	return ""
}

// TestOnlyNodeRoutesCallNodes calls a node from the handlers of a route that the table has, and
// of one that it lacks.
func TestOnlyNodeRoutesCallNodes(t *testing.T) {
	t.Parallel()
	config, node := scripted(t, "house", 7)
	pool, err := chain.OpenPool(chain.PoolConfig{Chain: config.Chain, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := pool.Nodes()[0].Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for _, pattern := range []string{"POST /x402/verify", "GET /api/invoices"} {
		route := routeAt(t, pattern)
		route.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			ctx := chain.OnBehalfOf(r.Context(), "acme")
			if err := pool.Requests().CallContext(ctx, new(hexutil.Uint64), "eth_chainId"); err != nil {
				got[pattern] = err.Error()
			}
		})
		withNodes(route).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	}
	if diff := cmp.Diff(map[string]string{"GET /api/invoices": chain.ErrNoRoute.Error()}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if n := node.Calls("eth_chainId"); n != 2 { // the check, and the route of the table
		t.Errorf("the node was called %d times, want 2", n)
	}
}
