package repotest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
	text, err := os.ReadFile(filepath.Join(root, name))
	expect.OK(t, err)
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
