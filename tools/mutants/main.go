// Command mutants changes important lines of the product, one at a time, and counts how many of the changes the tests
// notice. The seed and the code determine the changes. No file is changed: the compiler reads the change from an
// overlay.
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
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// shares are the parts of the changes, of 60, that a package gets.
var shares = map[string]int{
	"internal/ledger": 20, "internal/invoice": 10, "internal/indexer": 10, "internal/webhooks": 10, "internal/txmgr": 10,
}

const (
	// wanted is how many of a hundred changes the tests have to notice.
	wanted = 90
	// checks matches the tests that make test leaves out.
	checks = "^TestExtra"
)

func main() {
	seed := flag.Uint64("seed", 1, "which lines are changed, and how")
	count := flag.Int("count", 60, "the number of changes")
	only := flag.String("only", "", "make only the changes in files and lines that match, as in 'ledger/apply.go:10$'")
	own := flag.Bool("own", false, "run only the tests of the changed package, not of those that import it")
	flag.Parse()
	in, err := regexp.Compile(*only)
	if err == nil {
		err = run(context.Background(), os.Stdout, *seed, *count, in, *own)
	}
	if err != nil {
		log.Fatalf("mutants: %v", err)
	}
}

// run makes the changes, prints them, and returns an error if the tests notice too few.
func run(ctx context.Context, out io.Writer, seed uint64, count int, in *regexp.Regexp, own bool) error {
	drawn, err := draw(seed)
	if err != nil {
		return err
	}
	made, noticed, left := 0, 0, map[string]int{}
	for pkg, share := range shares {
		left[pkg] = (share*count + 59) / 60
	}
	for _, m := range drawn {
		at := fmt.Sprintf("%s:%d", m.file, m.line)
		if left[m.pkg] == 0 || !in.MatchString(at) {
			continue
		}
		by, err := test(ctx, m, own)
		switch {
		case errors.Is(err, errDoesNotCompile):
			continue
		case err != nil:
			return err
		case by == "":
			by = "SURVIVED"
		default:
			noticed++
		}
		made++
		left[m.pkg]--
		fmt.Fprintf(out, "%3d  %-45s %-60s %s\n", made, at, m.what, by)
	}
	fmt.Fprintf(out, "The tests noticed %d of %d changes.\n", noticed, made)
	if noticed*100 < made*wanted {
		return fmt.Errorf("the tests have to notice %d %%: write a test for each line that survived", wanted)
	}
	return nil
}

var errDoesNotCompile = errors.New("the change does not compile")

// test runs the tests of the changed package, then of the packages that import it, until one fails. It returns the name
// of the test that failed, or "".
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
		pkgs, err = importers(ctx, m.pkg)
	}
	if err == nil { // the package's tests with SQLite come first: they notice most changes
		by, err = goTest(ctx, overlay, pkgs[0], checks+"|/^postgres$")
	}
	for i := 0; i < len(pkgs) && by == "" && err == nil; i++ {
		by, err = goTest(ctx, overlay, pkgs[i], checks)
	}
	return by, err
}

// goTest runs the tests of a package until one fails, and returns its name.
func goTest(ctx context.Context, overlay, pkg, skip string) (failed string, err error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-json", "-failfast", "-count=1", "-vet=off", "-timeout", "30m",
		"-overlay", overlay, "-skip", skip, pkg)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err = errors.Join(err, cmd.Start()); err != nil {
		return "", err
	}
	for lines := bufio.NewScanner(out); failed == "" && err == nil && lines.Scan(); {
		var event struct{ Action, Test string }
		if json.Unmarshal(lines.Bytes(), &event) != nil { //nolint:musttag // the fields are called like those of go test
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

// importers returns the package and those that import it, or with tests that do.
func importers(ctx context.Context, pkg string) ([]string, error) {
	const format = `{{.ImportPath}} {{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}`
	out, err := exec.CommandContext(ctx, "go", "list", "-f", format, "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	found := []string{"./" + pkg}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		imports := func(f string) bool { return strings.HasSuffix(f, "/quittance/"+pkg) }
		if slices.ContainsFunc(fields[1:], imports) {
			found = append(found, fields[0])
		}
	}
	return found, nil
}
