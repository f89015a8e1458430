package devchain

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/internal/test/expect"
)

func TestRestartKeepsTheWorld(t *testing.T) {
	folder := t.TempDir()
	first := start(t, Config{DataDir: folder})
	hash, err := first.SendToken(t.Context(), first.Keys.Payer, Address(first.Keys.Merchant), big.NewInt(5), nil)
	succeed(t, first, hash, err)
	head, endpoint := first.head().Hash(), first.RPCURL()
	expect.OK(t, first.Close())
	at := expect.Must(url.Parse(endpoint))

	second := start(t, Config{DataDir: folder, RPCAddr: at.Host})
	if second.RPCURL() != endpoint {
		t.Errorf("JSON-RPC is at %s, want %s again", second.RPCURL(), endpoint)
	}
	if second.Token != first.Token || second.Registry != first.Registry {
		t.Errorf("contracts are at %s and %s, want %s and %s",
			second.Token, second.Registry, first.Token, first.Registry)
	}
	for i, key := range second.Keys.all() {
		if !key.Equal(first.Keys.all()[i]) {
			t.Errorf("key %d has changed", i)
		}
	}
	if second.head().Hash() != head {
		t.Errorf("head is %s, want %s: a restart adds no block", second.head().Hash(), head)
	}
	if _, err := second.Mined(t.Context(), hash); err != nil {
		t.Error(err)
	}
	expect.Equal(t, balance(t, second, Address(second.Keys.Merchant)), 5, "merchant has … minor units:")
}

func TestStartRefuses(t *testing.T) {
	used := t.TempDir()
	running := expect.Must(url.Parse(start(t, Config{DataDir: used}).RPCURL()))
	keyless := t.TempDir()
	expect.OK(t, start(t, Config{DataDir: keyless}).Close())
	expect.OK(t, os.Remove(filepath.Join(keyless, keysFile)))
	garbled := t.TempDir()
	secret := strings.Repeat("5", 63) + "g"
	file := fmt.Sprintf(`{"deployer": "0x%s"}`, secret)
	expect.OK(t, os.WriteFile(filepath.Join(garbled, keysFile), []byte(file), 0o600))
	for _, test := range []struct {
		name string
		conf Config
		want string
	}{
		{"folder in use", Config{DataDir: used}, "in use"},
		{"chain without keys", Config{DataDir: keyless}, "not its keys"},
		{"invalid keys", Config{DataDir: garbled}, "not a private key"},
		{"folder that is a file", Config{DataDir: filepath.Join(garbled, keysFile)}, "not a directory"},
		{"address without port", Config{RPCAddr: "127.0.0.1"}, "want IP:PORT"},
		{"address by name", Config{RPCAddr: "localhost:0"}, "want an IP address"},
		{"port taken", Config{RPCAddr: running.Host}, "choose another"},
		{"port out of range", Config{RPCAddr: "127.0.0.1:65536"}, "want an IP address and a port"},
		{"no randomness", Config{Rand: bytes.NewReader(make([]byte, 31))}, "make a key"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := Start(t.Context(), test.conf)
			if err == nil {
				t.Fatal(errors.Join(errors.New("started"), c.Close()))
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %q, want it to say %q", err, test.want)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("error %q quotes a key", err)
			}
		})
	}
}

func TestKeysAreForTheirOwnerAlone(t *testing.T) {
	folder := t.TempDir()
	start(t, Config{DataDir: folder})
	info, err := os.Stat(filepath.Join(folder, keysFile))
	expect.OK(t, err)
	expect.Equal(t, info.Mode().Perm(), 0o600, "keys have mode")
}

// TestStartAfterAnInterruptedFirstStart corrupts a database as a kill can while LevelDB creates it. An incomplete chain is
// replaced, with the same keys; a complete one is never removed.
func TestStartAfterAnInterruptedFirstStart(t *testing.T) {
	folder := t.TempDir()
	first := start(t, Config{DataDir: folder})
	expect.OK(t, first.Close())
	database := filepath.Join(folder, chainFolder, databaseFolder)
	current := filepath.Join(database, "CURRENT")
	expect.OK(t, os.WriteFile(current, []byte("MANIF"), 0o600))
	if c, err := Start(t.Context(), Config{DataDir: folder}); err == nil {
		t.Fatal(errors.Join(errors.New("started on a spoilt complete chain"), c.Close()))
	}
	if left, err := os.ReadFile(current); err != nil || string(left) != "MANIF" {
		t.Fatalf("a complete chain's database was touched: %q, %v", left, err)
	}
	expect.OK(t, os.Remove(filepath.Join(folder, chainFolder, completeFile)))
	second := start(t, Config{DataDir: folder})
	requireWorld(t, second)
	if second.Token != first.Token {
		t.Errorf("token is at %s, want %s as before", second.Token, first.Token)
	}
}

func requireWorld(t *testing.T, c *Chain) {
	t.Helper()
	for _, contract := range []common.Address{c.Token, c.Registry, c.DepositFactory, c.AuthorizationRelay} {
		if code, err := c.Client().CodeAt(t.Context(), contract, nil); err != nil || len(code) == 0 {
			t.Errorf("no contract at %s (%v)", contract, err)
		}
	}
	payer, merchant := balance(t, c, Address(c.Keys.Payer)), balance(t, c, Address(c.Keys.Merchant))
	if payer+merchant != payerTokens {
		t.Errorf("payer and merchant have %d and %d, want %d together", payer, merchant, int64(payerTokens))
	}
	if nonce, err := c.Client().NonceAt(t.Context(), Address(c.Keys.Deployer), nil); err != nil || nonce != 5 {
		t.Errorf("deployer has sent %d transactions (%v), want 5", nonce, err)
	}
}

// childFolder is the environment variable that makes the test binary run childMain.
const childFolder = "DEVCHAIN_TEST_CHILD_FOLDER"

func childRequested() bool { return os.Getenv(childFolder) != "" }

// childMain pays and seals until it is killed. Each line on standard output reports a sealed block and its payment.
func childMain() {
	ctx := context.Background()
	c, err := Start(ctx, Config{DataDir: os.Getenv(childFolder)})
	for err == nil {
		var payment common.Hash
		if payment, err = c.SendToken(ctx, c.Keys.Payer, Address(c.Keys.Merchant), common.Big1, nil); err != nil {
			break
		}
		if err = c.Seal(ctx); err != nil {
			break
		}
		_, err = fmt.Println(c.head().Number, c.head().Hash(), payment)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// sealedPayment is a line of the child.
type sealedPayment struct {
	number         int64
	block, payment common.Hash
}

// runAndKill runs the child until it has reported a number of blocks, or until timeout, kills it, and returns all lines.
func runAndKill(t *testing.T, folder string, blocks int, timeout time.Duration) []sealedPayment {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0])
	child.Env = append(os.Environ(), childFolder+"="+folder)
	var stderr bytes.Buffer
	child.Stderr = &stderr
	lines, err := child.StdoutPipe()
	expect.OK(t, err)
	expect.OK(t, child.Start())
	var sealedPayments []sealedPayment
	for scanner := bufio.NewScanner(lines); scanner.Scan(); {
		var p sealedPayment
		var block, payment string
		if _, err := fmt.Sscan(scanner.Text(), &p.number, &block, &payment); err != nil {
			break // the truncated last line
		}
		p.block, p.payment = common.HexToHash(block), common.HexToHash(payment)
		if len(payment) == 2+2*common.HashLength {
			sealedPayments = append(sealedPayments, p)
		}
		if len(sealedPayments) == blocks {
			cancel() // CommandContext sends SIGKILL; the output before that is still read
		}
	}
	if err := child.Wait(); err == nil || stderr.Len() > 0 {
		t.Fatalf("child ended (%v): %s", err, &stderr)
	}
	return sealedPayments
}

func TestExtraKilledWhileSealing(t *testing.T) {
	folder := t.TempDir()
	for round := range 6 {
		sealedPayments := runAndKill(t, folder, 5+rand.IntN(60), time.Minute)
		c, err := Start(t.Context(), Config{DataDir: folder})
		if err != nil {
			t.Fatalf("round %d: start after a kill: %v", round, err)
		}
		requireWorld(t, c)
		for _, p := range sealedPayments {
			header, err := c.Client().HeaderByNumber(t.Context(), big.NewInt(p.number))
			if err != nil || header.Hash() != p.block {
				t.Fatalf("round %d: block %d of %s was promised, the chain has %v (%v)",
					round, p.number, p.block, header, err)
			}
			receipt, err := c.Client().TransactionReceipt(t.Context(), p.payment)
			if err != nil || receipt.BlockHash != p.block {
				t.Fatalf("round %d: payment %s was promised in %s (%v)", round, p.payment, p.block, err)
			}
		}
		// Every block of the child has one payment of one minor unit.
		if paid := balance(t, c, Address(c.Keys.Merchant)); paid < sealedPayments[len(sealedPayments)-1].number-1 {
			t.Fatalf("round %d: merchant has %d minor units at block %d", round, paid, sealedPayments[len(sealedPayments)-1].number)
		}
		expect.OK(t, c.Close())
	}
}

// TestExtraKilledWhileStarting kills first starts, and later starts on the same folder, at random moments.
func TestExtraKilledWhileStarting(t *testing.T) {
	began := time.Now()
	runAndKill(t, t.TempDir(), 1, time.Minute)
	usual := time.Since(began)
	for range 12 {
		folder := t.TempDir()
		for range 2 {
			runAndKill(t, folder, 1, usual/20+rand.N(usual))
			c, err := Start(t.Context(), Config{DataDir: folder})
			if err != nil {
				t.Fatalf("start after a kill: %v", err)
			}
			requireWorld(t, c)
			expect.OK(t, c.Close())
		}
	}
}

func TestKeysComeFromTheRandomnessGiven(t *testing.T) {
	seed := crypto.Keccak256([]byte("seed"))
	first, err := newKeys(bytes.NewReader(bytes.Repeat(seed, 4)))
	expect.OK(t, err)
	if !bytes.Equal(crypto.FromECDSA(first.Payer), seed) {
		t.Error("the payer's key is not the randomness that was given")
	}
}
