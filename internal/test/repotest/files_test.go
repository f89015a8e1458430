package repotest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

// root is the folder of the repository.
var root = testdeps.Repo(".")

// outside are folders that are not the project's own text.
var outside = []string{".git", "node_modules", "bin", "dist", "testdata"}

// files returns the paths of the repository's files with an extension, relative to root.
func files(t *testing.T, ext string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(outside, entry.Name()):
			return filepath.SkipDir
		case filepath.Ext(path) == ext && !entry.IsDir():
			name, err := filepath.Rel(root, path)
			found = append(found, name)
			return err
		}
		return nil
	})
	expect.OK(t, err)
	if len(found) == 0 {
		t.Fatalf("no %s files below %s", ext, root)
	}
	return found
}

// read returns a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	text := expect.Must(os.ReadFile(filepath.Join(root, name)))
	return string(text)
}

// eachGoFile parses every Go file that is written by hand.
func eachGoFile(t *testing.T, visit func(name string, set *token.FileSet, file *ast.File)) {
	t.Helper()
	set := token.NewFileSet()
	for _, name := range files(t, ".go") {
		if strings.HasSuffix(name, ".gen.go") {
			continue
		}
		file, err := parser.ParseFile(set, filepath.Join(root, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		expect.OK(t, err)
		visit(name, set, file)
	}
}

// maxLines is the largest number of lines of a production file. A longer one holds more than one idea.
const maxLines = 400

// TestFilesAreShort wants each production file to have at most maxLines lines.
func TestFilesAreShort(t *testing.T) {
	t.Parallel()
	for _, name := range files(t, ".go") {
		if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".gen.go") {
			continue
		}
		if n := strings.Count(read(t, name), "\n"); n > maxLines {
			t.Errorf("%s has %d lines; split it, want at most %d", name, n, maxLines)
		}
	}
}

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

// maxFolders is how many folders internal has at most, without those below them.
const maxFolders = 25

// TestPackagesAreDescribed wants each folder below internal in the table of docs/architecture.md; of folders that only
// hold others, these.
func TestPackagesAreDescribed(t *testing.T) {
	text := read(t, "docs/architecture.md")
	folders, _ := list(t, "internal")
	if len(folders) > maxFolders {
		t.Errorf("internal has %d folders; want at most %d", len(folders), maxFolders)
	}
	for len(folders) > 0 {
		name := folders[0]
		below, files := list(t, name)
		if folders = folders[1:]; files == 0 {
			folders = append(folders, below...)
		} else if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("docs/architecture.md lacks %s", name)
		}
	}
}

// list returns the folders in a folder, and how many files are in it.
func list(t *testing.T, folder string) (folders []string, files int) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, folder))
	expect.OK(t, err)
	for _, e := range entries {
		if e.IsDir() {
			folders = append(folders, folder+"/"+e.Name())
		} else {
			files++
		}
	}
	return folders, files
}

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
