package e2e

import (
	"context"
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
	"github.com/quittance/quittance/webhook"
)

var previous = flag.String("previous", "", "the commit that TestExtraRollingUpgrade upgrades from, instead of the last release or, before the first one, HEAD^")

// TestExtraRollingUpgrade replaces the replicas of the previous version one after the other while invoices
// are created and paid. The first new one migrates the schema while the old ones work. No request is
// refused, no payment is lost, and no work is done twice.
func TestExtraRollingUpgrade(t *testing.T) {
	t.Parallel()
	old := buildPrevious(t)
	s := newService(t, dbtest.Postgres(t))
	// The responses are not checked: openapi.yaml describes the responses of this version.
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(transport.CloseIdleConnections)
	s.http = withKey(&http.Client{Transport: transport, Timeout: patience})
	config := s.configFor(old)
	running := []*replica{s.startProgram(old, config), s.startProgram(old, config)}
	orders := s.takeOrders(running...)
	orders.await(t, ordersBetween)
	wantTypes := make(map[string][]string)
	for i := range running {
		next := s.start()
		orders.await(t, ordersBetween) // on replicas of both versions
		before := s.create(running[i], 1_000_000+2*i)
		orders.move(t, i, s.api(next))
		former := running[i]
		running[i] = next
		paid := s.payTransferAmount(before)
		if code := former.stop(t, syscall.SIGTERM, patience); code != 0 {
			t.Errorf("the former replica ended with %d", code)
		}
		if strings.Contains(former.stderr.String(), "level=ERROR") {
			t.Errorf("the former replica logged errors:\n%s", former.stderr.String())
		}
		s.awaitPayment(running[0], before.ID, paid, apitypes.PaymentConfirmed)
		s.awaitCommitment(before.OnChainInvoiceID, contracts.StatusClosed)
		wantTypes[before.ID] = []string{webhook.InvoiceCreated, webhook.PaymentReceived, webhook.InvoicePaid}
	}
	orders.await(t, ordersBetween)
	made := orders.stop()
	for id := range made {
		wantTypes[id] = []string{webhook.InvoiceCreated}
	}
	if orders.refused > 0 {
		t.Errorf("%d creates were refused during the upgrade", orders.refused)
	}
	t.Logf("%d invoices were created meanwhile", len(made))
	s.expectInvoices(running[1], wantTypes)
	s.awaitEvents(wantTypes)
	s.expectEventsOnce(wantTypes)
}

// unknownSetting matches the error of an older version for a newer setting.
var unknownSetting = regexp.MustCompile(`line (\d+), column 1: there is no setting`)

// configFor returns the path of a configuration without the settings that another version of the program does not know.
func (s *service) configFor(path string) string {
	s.Helper()
	text := expect.Must(os.ReadFile(s.config))
	lines := strings.Split(string(text), "\n")
	config := filepath.Join(s.TempDir(), "quittance.yaml")
	for range lines {
		expect.OK(s, os.WriteFile(config, []byte(strings.Join(lines, "\n")), 0o600))
		// The chain commands read the configuration, and need no running service.
		c := launchProgram(s, path, s.env, "chain", "status", "--json", "--config", config)
		c.exit(s, patience)
		m := unknownSetting.FindStringSubmatch(c.stderr.String())
		if m == nil {
			break
		}
		n, err := strconv.Atoi(m[1])
		if err != nil || n > len(lines) {
			s.Fatalf("the previous version refuses the configuration: %s", c.stderr.String())
		}
		s.Logf("the previous version has no setting for %q", lines[n-1])
		lines[n-1] = ""
	}
	return config
}

// previousCommit returns the commit to upgrade from: the one that the flag names, or else the last release. Before the
// first release it is the parent commit, unless the schema has changed since: such changes have no migration. It is
// empty if there is no such commit, as in a shallow clone or an archive.
func previousCommit(tb testing.TB, git func(args ...string) (string, error)) string {
	tb.Helper()
	if *previous != "" {
		commit, err := git("rev-parse", "--verify", "--quiet", *previous+"^{commit}")
		if err != nil {
			tb.Fatalf("there is no commit %s", *previous)
		}
		return commit
	}
	if release, err := git("describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD^"); err == nil {
		return release
	}
	if _, err := git("diff", "--quiet", "HEAD^", "--", "internal/db/schema"); err != nil {
		return ""
	}
	return "HEAD^"
}

// buildPrevious builds the previous version. Without one to upgrade from it returns this version.
func buildPrevious(tb testing.TB) string {
	tb.Helper()
	ctx := within(tb, 15*time.Minute) // many packages, while other tests keep the machine busy
	top := testdeps.Repo(".")
	git := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "git", append([]string{"-C", top}, args...)...)
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	commit := previousCommit(tb, git)
	if commit == "" {
		tb.Log("there is no version to upgrade from here: the previous version is this version, so only the order of the upgrade is tested")
		return program
	}
	subject, err := git("log", "-1", "--format=%h %s", commit)
	expect.OK(tb, err)
	tb.Logf("the previous version is %s", subject)
	dir := tb.TempDir()
	source, binary := filepath.Join(dir, "source"), filepath.Join(dir, "quittance")
	expect.OK(tb, os.Mkdir(source, 0o700))
	archive := filepath.Join(dir, "source.tar")
	if _, err := git("archive", "--output", archive, commit); err != nil {
		tb.Fatalf("archive %s: %v", commit, err)
	}
	run(ctx, tb, dir, "tar", "-xf", archive, "-C", source)
	run(ctx, tb, source, "go", "build", "-o", binary, "./cmd/quittance")
	return binary
}

// run runs a command that must succeed.
func run(ctx context.Context, tb testing.TB, dir, name string, args ...string) {
	tb.Helper()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}
