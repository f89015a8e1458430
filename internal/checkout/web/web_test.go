package web_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/testdeps"
)

func TestMain(m *testing.M) {
	testdeps.Short("TestBundles", "TestTypes")
	os.Exit(m.Run())
}

const static = "../static"

// TestBundles bundles the modules again, and compares the result with what is committed.
func TestBundles(t *testing.T) {
	t.Parallel()
	modules, err := testdeps.NodeModules(t.Context(), "web", ".")
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	if text, err := exec.CommandContext(t.Context(), "go", bundling(t, modules, out)...).CombinedOutput(); err != nil {
		t.Fatalf("bundle: %v\n%s", err, text)
	}
	made, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range made {
		want, err := os.ReadFile(filepath.Join(out, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(static, f.Name())); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the modules are bundled to; run go generate ./internal/checkout/web", f.Name())
		}
	}
}

// bundling returns the arguments with which go generate bundles, with folders of the test.
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

// TestTypes checks the types of the modules.
func TestTypes(t *testing.T) {
	t.Parallel()
	modules, err := testdeps.NodeModules(t.Context(), "web", ".")
	if err != nil {
		t.Fatal(err)
	}
	node, err := testdeps.ProgramOf(t.Context(), "web", "nodejs", "node")
	if err != nil {
		t.Fatal(err)
	}
	// The compiler looks for packages in the folders above the modules.
	dir := t.TempDir()
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob("*.ts")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(sources, "tsconfig.json") {
		text, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	check := exec.CommandContext(t.Context(), node, filepath.Join(modules, "typescript", "bin", "tsc"), "--project", dir)
	if text, err := check.CombinedOutput(); err != nil {
		t.Errorf("tsc: %v\n%s", err, strings.ReplaceAll(string(text), dir+"/", ""))
	}
}
