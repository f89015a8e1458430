package repotest_test

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryTestRuns checks that CI runs every test but `make walk`. The name of a test decides whether `make test` or `make
// check` runs it, and no test skips itself. A separate module that has tests is named by one of the two.
func TestEveryTestRuns(t *testing.T) {
	makefile := read(t, "Makefile")
	for _, want := range []string{
		"\ntest: ## ", "\t$(GOTEST) -timeout 20m -skip '^TestExtra' $(LONGEST) ./...\n",
		"\ncheck: $(CHECKS) ", "\nCHECKS     ?= extra ", "\t$(GOTEST) -timeout 20m -run '^TestExtra' $(LONGEST) $$(git grep -lE '^func TestExtra' -- '*_test.go' ':!tools' ",
	} {
		if !strings.Contains(makefile, want) {
			t.Errorf("the Makefile lacks %q", want)
		}
	}
	for _, want := range []string{" make test ", " check CHECKS=\"extra "} {
		if ci := read(t, ".ci/run"); !strings.Contains(ci, want) || strings.Contains(ci, "-short") {
			t.Errorf(".ci/run lacks %q, or has -short", want)
		}
	}
	for _, name := range files(t, ".mod") {
		module := filepath.Dir(name)
		if tests, err := filepath.Glob(filepath.Join(root, module, "*_test.go")); err != nil || module == "." {
			continue
		} else if len(tests) > 0 && !strings.Contains(makefile, "\tgo -C "+module+" test ") {
			t.Errorf("the Makefile does not run the tests of the module %s", module)
		}
	}
	constraint := regexp.MustCompile(`(?m)^//go:build (.*)$`)
	eachGoFile(t, func(name string, set *token.FileSet, file *ast.File) {
		for _, c := range constraint.FindAllStringSubmatch(read(t, name), -1) {
			if strings.HasSuffix(name, "_test.go") && c[1] != "linux" && c[1] != "!linux" {
				t.Errorf("%s: %s leaves out the tests of the file", name, c[0])
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && skips(call) && filepath.ToSlash(filepath.Dir(name)) != "internal/test/dbtest" {
				t.Errorf("%s: a test skips itself: let its name begin with TestExtra instead", set.Position(n.Pos()))
			}
			return true
		})
	})
}

// TestPathsFromTheTop checks that tests name files of the repository from its top, by testdeps.Repo: a path that
// goes up two folders or more breaks when its package moves.
func TestPathsFromTheTop(t *testing.T) {
	eachGoFile(t, func(name string, set *token.FileSet, file *ast.File) {
		for _, folder := range []string{"tools/", "deploy/litestream/", "sdk/typescript/"} { // other modules, and a copy of the layout
			if strings.HasPrefix(filepath.ToSlash(name), folder) {
				return
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && strings.HasPrefix(text.Value, `"../../`) {
				t.Errorf("%s: name the file from the repository's top, by testdeps.Repo", set.Position(n.Pos()))
			}
			return true
		})
	})
}

// skips reports whether a call ends a test as skipped. rapid's r.Skip only draws another action.
func skips(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !strings.HasPrefix(method.Sel.Name, "Skip") {
		return false
	}
	on, ok := method.X.(*ast.Ident)
	return ok && (on.Name == "t" || on.Name == "tb" || on.Name == "b")
}
