// Package anviltest runs Foundry's anvil and sends transactions with Foundry's cast, so
// that tests use a node and a client that are independent of go-ethereum.
package anviltest

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/test/testdeps"
)

const (
	// startTimeout bounds a node's start.
	startTimeout = 2 * time.Minute
	// castTimeout bounds one call of cast, including the mining of its transaction.
	castTimeout = 2 * time.Minute
	// ChainID is the default EIP-155 id of a node's chain.
	ChainID = 31337
)

// Options are the options of a node.
type Options struct {
	// BlockTime is the time between blocks, in whole seconds. 0 mines each transaction at once, and nothing else.
	BlockTime time.Duration
	// ChainID is the EIP-155 id of the chain; 0 means the constant ChainID.
	ChainID int
}

// Account is an account with ether.
type Account struct {
	Address string // 0x and 40 digits
	Key     string // 0x and 64 digits
}

// Anvil is a running node.
type Anvil struct {
	Endpoint string // address and port
	Accounts []Account

	cast string
	dir  string
}

// Start runs a node until the test ends. The test fails if anvil or cast can neither be found nor installed.
func Start(tb testing.TB, o Options) *Anvil {
	tb.Helper()
	testdeps.Extra(tb, "anvil")
	found, err := findTools()
	if err != nil {
		tb.Fatal("anviltest: no anvil or cast; the reason is printed once, above")
	}
	args := []string{"--port", "0", "--max-persisted-states", "0"}
	if o.BlockTime > 0 {
		args = append(args, "--block-time", strconv.Itoa(int(o.BlockTime/time.Second)))
	}
	if o.ChainID != 0 {
		args = append(args, "--chain-id", strconv.Itoa(o.ChainID))
	}
	cmd := exec.Command(found.anvil, args...) //nolint:noctx // it is ended by the test's cleanup
	cmd.SysProcAttr = dieWithParent()
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatalf("anviltest: %v", err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		tb.Fatalf("anviltest: start the node: %v", err)
	}
	a := &Anvil{cast: found.cast, dir: tb.TempDir()}
	started := make(chan string, 1)
	var reader sync.WaitGroup
	reader.Go(func() { a.listen(out, started) })
	tb.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil {
			tb.Errorf("anviltest: the node ended during the test: %v", err)
		}
		reader.Wait()
		_ = cmd.Wait() // the error is that it was killed
	})
	timer := time.NewTimer(startTimeout)
	defer timer.Stop()
	select {
	case text := <-started:
		if a.Endpoint == "" || len(a.Accounts) == 0 {
			tb.Fatalf("anviltest: the node did not say where it listens and which accounts it has:\n%s", text)
		}
	case <-timer.C:
		tb.Fatalf("anviltest: the node did not start within %s", startTimeout)
	}
	return a
}

// inList matches an account or a key in anvil's list.
var inList = regexp.MustCompile(`^\(\d+\) (0x[0-9a-fA-F]{40}|0x[0-9a-fA-F]{64})\b`)

// listen sends the node's output up to its start to started, and discards the rest.
func (a *Anvil) listen(out io.Reader, started chan<- string) {
	var text strings.Builder
	lines := bufio.NewScanner(out)
	keys := 0
	for a.Endpoint == "" && lines.Scan() {
		line := lines.Text()
		text.WriteString(line + "\n")
		a.Endpoint = strings.TrimPrefix(line, "Listening on ")
		if a.Endpoint == line {
			a.Endpoint = ""
		}
		switch m := inList.FindStringSubmatch(line); {
		case m == nil:
		case len(m[1]) == len("0x")+40:
			a.Accounts = append(a.Accounts, Account{Address: m[1]})
		case keys < len(a.Accounts):
			a.Accounts[keys].Key = m[1]
			keys++
		}
	}
	started <- text.String()
	_, _ = io.Copy(io.Discard, out) // until the node ends
}

// URL returns the URL of the node's JSON-RPC.
func (a *Anvil) URL() string { return "http://" + a.Endpoint }

// Cast runs cast with the node and returns its output.
func (a *Anvil) Cast(tb testing.TB, args ...string) string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), castTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, a.cast, args...)
	// The user's settings are ignored.
	cmd.Dir = a.dir
	cmd.Env = []string{"HOME=" + a.dir, "ETH_RPC_URL=" + a.URL(), "NO_COLOR=1"}
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("anviltest: cast %q: %v\n%s%s", args, err, out, &complaint)
	}
	return strings.TrimSpace(string(out))
}

// Receipt is a receipt in cast's JSON output.
type Receipt struct {
	TxHash   string `json:"transactionHash"`
	Status   string `json:"status"`          // 0x1 for success
	Contract string `json:"contractAddress"` // created contract, if any
}

// Send runs cast send with args, from an account, and returns the receipt. The test fails if the transaction fails.
func (a *Anvil) Send(tb testing.TB, from Account, args ...string) Receipt {
	tb.Helper()
	text := a.Cast(tb, append([]string{"send", "--json", "--private-key", from.Key}, args...)...)
	var r Receipt
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		tb.Fatalf("anviltest: cast send printed no receipt: %v\n%s", err, text)
	}
	if r.Status != "0x1" {
		tb.Fatalf("anviltest: the transaction %s failed: cast send %q", r.TxHash, args)
	}
	return r
}
