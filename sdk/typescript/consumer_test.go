package typescript_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/test/devtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

// maxLines is the maximum number of lines, without blank ones, for creating an invoice and handling invoice.paid.
const maxLines = 20

var blocks = regexp.MustCompile("(?ms)^```ts\n(.*?)^```$")

// TestExtraReadmeIsOne compares the programs in the two READMEs and in the example.
func TestExtraReadmeIsOne(t *testing.T) {
	t.Parallel()
	program := devtest.Block(t, "README.md", "ts")
	if devtest.Block(t, testdeps.Repo("README.md"), "ts") != program {
		t.Error("README.md of the repository has another program")
	}
	if same, err := os.ReadFile("examples/quickstart/main.ts"); err != nil || string(same) != program {
		t.Errorf("examples/quickstart/main.ts is another program (%v)", err)
	}
	if n := devtest.Lines(program); n > maxLines {
		t.Errorf("the program has %d lines, want at most %d", n, maxLines)
	}
}

// module writes the README's blocks of code to a folder of the consumer, main.ts first, and
// compiles them with tsc --strict as modules of a kind.
func module(t *testing.T, kind string) (dir string) {
	t.Helper()
	readme := expect.Must(os.ReadFile("README.md"))
	dir = filepath.Join(must(t, consumer), kind)
	files := map[string]string{"package.json": fmt.Sprintf(`{"type":%q}`, kind)}
	var names []string
	for i, block := range blocks.FindAllStringSubmatch(string(readme), -1) {
		name := "main.ts"
		if i > 0 {
			name = fmt.Sprintf("block%d.ts", i)
		}
		files[name], names = block[1], append(names, name)
	}
	if len(names) < 3 {
		t.Fatalf("README.md has the blocks %q", names)
	}
	samples := expect.Must(os.ReadFile(testdeps.Repo("internal/web/apidocs/samples/samples.ts")))
	files["samples.ts"], names = string(samples), append(names, "samples.ts")
	write(t, dir, files)
	run(t, dir, "tsc", append([]string{"--ignoreConfig", "--strict", "--target", "ES2022", "--module", "NodeNext", "--types", "node"}, names...)...)
	return dir
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	expect.OK(t, os.MkdirAll(dir, 0o700))
	for name, text := range files {
		expect.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
}

// run runs a tool of the consumer in one of its folders.
func run(t *testing.T, dir, tool string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin(t, tool), args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", tool, strings.Join(args, " "), err, out)
	}
}

// bin returns the path of a tool of the consumer.
func bin(t *testing.T, tool string) string {
	t.Helper()
	modules := filepath.Join(must(t, consumer), "node_modules")
	switch tool {
	case "bun":
		// The package bun copies this program in an install script, which is not run.
		arch := map[string]string{"amd64": "x64", "arm64": "aarch64"}[runtime.GOARCH]
		return filepath.Join(modules, "@oven", "bun-"+runtime.GOOS+"-"+arch, "bin", "bun")
	case "node22": // npm has it for Linux; elsewhere the local one is used
		if runtime.GOOS != "linux" {
			return "node"
		}
		arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
		return filepath.Join(modules, "node22-linux-"+arch, "bin", "node")
	default:
		return filepath.Join(modules, ".bin", tool)
	}
}

// start runs a program in a folder of the consumer, with a separate merchant.
func start(t *testing.T, w *devtest.World, merchant, dir string, command ...string) *devtest.Program {
	t.Helper()
	address := devtest.FreeAddress(t)
	_, port, err := net.SplitHostPort(address)
	expect.OK(t, err)
	m := w.Merchant(t, merchant, "http://"+address+"/webhooks")
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "QUITTANCE_URL="+w.Info.BaseURL, "QUITTANCE_API_KEY="+m.Key, "WEBHOOK_SECRET="+m.Secret, "PORT="+port,
		"NODE_OPTIONS="+nodeOptions(t))
	return devtest.Run(t, cmd)
}

// nodeOptions gives Debian 12's Node 18 WebCrypto as a global, as Node 20 has it.
func nodeOptions(t *testing.T) string {
	t.Helper()
	version, err := exec.CommandContext(t.Context(), "node", "--version").Output()
	expect.OK(t, err)
	if strings.HasPrefix(string(version), "v18.") {
		return "--experimental-global-webcrypto"
	}
	return ""
}

// TestExtraReadmeProgram runs the README's program with every runtime, pays its invoice, and
// waits until it has handled the webhook.
func TestExtraReadmeProgram(t *testing.T) {
	t.Parallel()
	esm, cjs := module(t, "module"), module(t, "commonjs")
	w := devtest.Start(t)
	for _, test := range []struct {
		name, dir string
		command   []string
	}{
		{"node-esm", esm, []string{"node", "main.js"}},
		{"node-cjs", cjs, []string{"node", "main.js"}},
		{"deno", esm, []string{bin(t, "deno"), "run", "--allow-net", "--allow-env", "--allow-read", "--node-modules-dir=manual", "main.ts"}},
		{"bun", esm, []string{bin(t, "bun"), "main.ts"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := start(t, w, test.name, test.dir, test.command...)
			invoice := p.Await(`pay at \S+/checkout/(inv_\w+)`)
			w.Pay(t, invoice)
			if paid := p.Await(`^paid (inv_\w+)`); paid != invoice {
				t.Errorf("it handled %s, want %s", paid, invoice)
			}
		})
	}
}

// TestExtraExamples buys from the shops.
func TestExtraExamples(t *testing.T) {
	t.Parallel()
	dir := must(t, consumer)
	for name, parts := range map[string][]string{"express": {"src", "tsconfig.json", "package.json"}, "next": {"app", "lib"}} {
		for _, part := range parts {
			expect.OK(t, copyAll(filepath.Join("examples", name, part), filepath.Join(dir, name, part)))
		}
	}
	run(t, filepath.Join(dir, "express"), "tsc")
	run(t, dir, "tsc")
	w := devtest.Start(t)
	t.Run("express", func(t *testing.T) {
		p := start(t, w, "express", filepath.Join(dir, "express"), "node", "dist/main.js")
		devtest.Buy(t, w, p.Await(`open for business at (\S+)`))
	})
	t.Run("next", func(t *testing.T) {
		p := start(t, w, "next", dir, bin(t, "bun"), "next.ts")
		devtest.Buy(t, w, p.Await(`open for business at (\S+)`))
	})
}

func copyAll(from, to string) error {
	if info, err := os.Stat(from); err != nil || !info.IsDir() {
		return errors.Join(err, copyFile(from, to))
	}
	return os.CopyFS(to, os.DirFS(from))
}
