package repotest_test

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"
)

// statement matches the beginning of an SQL statement.
var statement = regexp.MustCompile("^[\"`]\\s*(SELECT [^ ]|INSERT INTO |UPDATE [a-z_]+ SET |DELETE FROM |WITH [a-z_]+ (\\(|AS ))")

// TestSQLIsInItsFiles allows SQL only in the engine and in the *_sql.go files of the packages that own the tables.
func TestSQLIsInItsFiles(t *testing.T) {
	t.Parallel()
	eachGoFile(t, func(name string, set *token.FileSet, file *ast.File) {
		if !strings.HasPrefix(name, "internal/") || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "_sql.go") {
			return
		}
		switch path.Base(path.Dir(name)) {
		case "db", "dbtest", "rowtest":
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && statement.MatchString(lit.Value) {
				t.Errorf("%s: SQL belongs into a *_sql.go file of the package that owns the table", set.Position(lit.Pos()))
			}
			return true
		})
	})
}
