// Command mutants changes important lines of the product, one at a time, and counts how many of the changes the tests
// notice. The seed and the code determine the changes. No file is changed: the compiler reads the change from an overlay.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// shares are the parts of the changes, of 60, that a package gets.
var shares = map[string]int{"internal/ledger": 20, "internal/invoice": 10, "internal/indexer": 10, "internal/webhooks": 10, "internal/txmgr": 10}

// wanted is how many of a hundred changes the tests have to notice.
const wanted = 90

// checks matches the tests that "make test" leaves out.
const checks = "^TestExtra"

// options are the program's flags.
type options struct {
	seed      uint64
	count     int
	in, at    string
	list, own bool
}

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 1, "which lines are changed, and how")
	flag.IntVar(&o.count, "count", 60, "the number of changes")
	flag.StringVar(&o.in, "in", "", "make only the changes in this package, as in internal/ledger")
	flag.StringVar(&o.at, "at", "", "make every change of these lines instead, as in internal/ledger/apply.go:10,internal/ledger/claim.go:20")
	flag.BoolVar(&o.list, "list", false, "print the changes and run no tests")
	flag.BoolVar(&o.own, "own", false, "run only the tests of the changed package, not of those that import it")
	flag.Parse()
	if err := run(context.Background(), o, os.Stdout); err != nil {
		log.Fatalf("mutants: %v", err)
	}
}

// run makes the changes, prints them, and returns an error if the tests notice too few.
func run(ctx context.Context, o options, out io.Writer) error {
	drawn, err := draw(o)
	if err != nil {
		return err
	}
	made, noticed, left := 0, 0, map[string]int{}
	for pkg, share := range shares {
		left[pkg] = (share*o.count + 59) / 60
	}
	for _, m := range drawn {
		if o.at == "" && left[m.pkg] == 0 || o.in != "" && m.pkg != o.in {
			continue
		}
		by := ""
		if !o.list {
			if by, err = test(ctx, m, o.own); errors.Is(err, errDoesNotCompile) {
				continue
			}
		}
		if err != nil {
			return err
		}
		made++
		left[m.pkg]--
		if by != "" {
			noticed++
		} else if !o.list {
			by = "SURVIVED"
		}
		fmt.Fprintf(out, "%3d  %-45s %-60s %s\n", made, fmt.Sprintf("%s:%d", m.file, m.line), m.what, by)
	}
	if o.list {
		return nil
	}
	fmt.Fprintf(out, "The tests noticed %d of %d changes.\n", noticed, made)
	if o.at == "" && noticed*100 < made*wanted {
		return fmt.Errorf("the tests have to notice %d %%: write a test for each line that survived", wanted)
	}
	return nil
}

var errDoesNotCompile = errors.New("the change does not compile")

// test runs the tests of the changed package, then of the packages that import it, until one fails. It returns the
// name of the test that failed, or "".
func test(ctx context.Context, m mutant, own bool) (by string, err error) {
	dir, err := os.MkdirTemp("", "quittance-mutant-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{file: changed}})
	if err = errors.Join(err, os.WriteFile(changed, m.source, 0o600), os.WriteFile(overlay, replace, 0o600)); err != nil {
		return "", err
	}
	pkgs := []string{"./" + m.pkg}
	if !own {
		if pkgs, err = importers(ctx, m.pkg); err != nil {
			return "", err
		}
	}
	// The package's tests with SQLite come first: they notice most changes.
	if by, err = goTest(ctx, overlay, "./"+m.pkg, checks+"|/^postgres$"); by != "" || err != nil {
		return by, err
	}
	for _, pkg := range pkgs {
		if by, err = goTest(ctx, overlay, pkg, checks); by != "" || err != nil {
			return by, err
		}
	}
	return "", nil
}

// goTest runs the tests of a package until one fails, and returns its name.
func goTest(ctx context.Context, overlay, pkg, skip string) (failed string, err error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-json", "-failfast", "-count=1", "-vet=off", "-overlay", overlay, "-timeout", "10m", "-skip", skip, pkg) //nolint:gosec // a package of this repository
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err = errors.Join(err, cmd.Start()); err != nil {
		return "", err
	}
	for lines := bufio.NewScanner(out); failed == "" && err == nil && lines.Scan(); {
		var event struct{ Action, Test string }
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			continue // a test printed the line
		}
		switch event.Action {
		case "build-fail":
			err = errDoesNotCompile
		case "fail":
			failed = strings.TrimPrefix(pkg, "./") + " " + event.Test
		}
	}
	if failed != "" || err != nil { // the other tests need not end
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait() // it was killed
		return failed, err
	}
	return "", cmd.Wait()
}

// importers returns the package and those that import it, or whose tests do.
func importers(ctx context.Context, pkg string) ([]string, error) {
	const format = `{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}{{end}}`
	out, err := exec.CommandContext(ctx, "go", "list", "-f", format, "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	found := []string{"./" + pkg}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) > 0 && slices.ContainsFunc(fields[1:], func(f string) bool { return strings.HasSuffix(f, "/quittance/"+pkg) }) {
			found = append(found, fields[0])
		}
	}
	return found, nil
}
