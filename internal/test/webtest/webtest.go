// Package webtest tests folders of TypeScript modules that go generate bundles for pages: that the
// committed bundles match the modules, and that the modules' types are right.
package webtest

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/test/testdeps"
)

// packages is the folder, below the top of the repository, with the package-lock.json that names the npm packages of
// all modules.
const packages = "internal/web/checkout/web"

func nodeModules(t *testing.T) string {
	t.Helper()
	modules, err := testdeps.NodeModules(t.Context(), "webtest", testdeps.Repo(packages))
	if err != nil {
		t.Fatal(err)
	}
	return modules
}

// Bundles bundles the modules of the test's folder like the go:generate line of web.go, and compares
// the result with the files in static, a folder.
func Bundles(t *testing.T, static string) {
	t.Helper()
	out := t.TempDir()
	if text, err := exec.CommandContext(t.Context(), "go", bundling(t, nodeModules(t), out)...).CombinedOutput(); err != nil {
		t.Fatalf("bundle: %v\n%s", err, text)
	}
	made, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	if len(made) == 0 {
		t.Fatal("nothing was bundled")
	}
	for _, f := range made {
		want, err := os.ReadFile(filepath.Join(out, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(static, f.Name())); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the modules are bundled to; run go generate in this folder", f.Name())
		}
	}
}

// bundling returns the arguments with which go generate bundles, with the test's folders.
func bundling(t *testing.T, modules, out string) []string {
	t.Helper()
	text, err := os.ReadFile("web.go")
	if err != nil {
		t.Fatal(err)
	}
	_, args, found := strings.Cut(string(text), "//go:generate go run ")
	if !found {
		t.Fatal("go generate bundles nothing")
	}
	args, _, _ = strings.Cut(args, "\n")
	list := append([]string{"run"}, strings.Fields(args)...)
	for flag, value := range map[string]string{"-modules": modules, "-out": out} {
		at := slices.Index(list, flag) + 1
		if at == 0 || at == len(list) {
			t.Fatalf("go generate bundles without %s", flag)
		}
		list[at] = value
	}
	return list
}

// Types checks the types of the modules in a folder, such as internal/web/checkout/web. folders are the
// folders that it imports from.
func Types(t *testing.T, folder string, folders ...string) {
	t.Helper()
	modules := nodeModules(t)
	node, err := testdeps.ProgramOf(t.Context(), "webtest", "nodejs", "node")
	if err != nil {
		t.Fatal(err)
	}
	// The compiler looks for packages in the folders above the modules.
	dir := t.TempDir()
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	for _, folder := range append(folders, folder) {
		copySources(t, folder, dir)
	}
	check := exec.CommandContext(t.Context(), node, filepath.Join(modules, "typescript", "bin", "tsc"), "--project", filepath.Join(dir, folder))
	if text, err := check.CombinedOutput(); err != nil {
		t.Errorf("tsc: %v\n%s", err, strings.ReplaceAll(string(text), dir+"/", ""))
	}
}

// copySources copies the modules and the compiler's settings of a folder to the same place
// below dir.
func copySources(t *testing.T, folder, dir string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
		t.Fatal(err)
	}
	source := os.DirFS(testdeps.Repo(folder))
	names, err := fs.Glob(source, "*.ts")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, "tsconfig.json") {
		text, err := fs.ReadFile(source, name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, folder, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
