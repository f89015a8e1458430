package anviltest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
)

// isolate sets PATH to an empty folder, which it returns, and the cache to another.
func isolate(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", "")
	return dir
}

// script writes a shell script.
func script(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestFindTool(t *testing.T) {
	path := filepath.Join(isolate(t), "anvil")
	script(t, path, "exit 0")
	t.Run("on PATH", func(t *testing.T) {
		if found, err := findTool(t.Context(), "anvil", "ANVIL"); err != nil || found != path {
			t.Errorf("findTool = %q, %v; want %q", found, err, path)
		}
	})
	t.Run("in the environment", func(t *testing.T) {
		t.Setenv("ANVIL", "/opt/anvil")
		if found, err := findTool(t.Context(), "anvil", "ANVIL"); err != nil || found != "/opt/anvil" {
			t.Errorf("findTool = %q, %v; want the one that was asked for", found, err)
		}
	})
	t.Run("nowhere", func(t *testing.T) {
		script(t, filepath.Join(filepath.Dir(path), "npm"), "exit 0")
		t.Setenv("QUITTANCE_TEST_INSTALL", "")
		_, err := findTool(t.Context(), "cast", "CAST")
		if err == nil {
			t.Fatal("found a tool that does not exist")
		}
		for _, want := range []string{"cast", "make check", "make test", "QUITTANCE_TEST_INSTALL", "https://getfoundry.sh", "CAST"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("the error does not name %q: %v", want, err)
			}
		}
	})
}

// TestExtraInstall replaces npm by a script that fails first and then installs.
func TestExtraInstall(t *testing.T) {
	npm := filepath.Join(isolate(t), "npm")
	t.Setenv("QUITTANCE_TEST_INSTALL", "1")
	script(t, npm, `echo >"$3/half"; echo "no route to the registry"; exit 1`)
	if path, err := findTool(t.Context(), "cast", "CAST"); err == nil || !strings.Contains(err.Error(), "no route to the registry") {
		t.Fatalf("findTool = %q, %v; want an error that shows what npm said", path, err)
	}
	bin := "node_modules/" + scope + "/" + packageOf("cast") + "/bin"
	script(t, npm, `[ ! -e "$3/half" ] && /bin/mkdir -p "$3/`+bin+`" && echo "$*" >"$3/`+bin+`/cast"`)
	path, err := findTool(t.Context(), "cast", "CAST")
	if err != nil {
		t.Fatal(err)
	}
	called, err := os.ReadFile(path)
	if want := scope + "/" + packageOf("cast") + "@" + version; err != nil || !strings.Contains(string(called), want) {
		t.Errorf("npm was called with %q, %v; want it to install %s", called, err, want)
	}
	t.Setenv("PATH", "") // so that it cannot be installed again
	if again, err := findTool(t.Context(), "cast", "CAST"); err != nil || again != path {
		t.Errorf("findTool = %q, %v; want what is installed, %q", again, err, path)
	}
}

func TestExtraAnvil(t *testing.T) {
	t.Parallel()
	a := Start(t, Options{})
	sender, receiver := a.Accounts[0], a.Accounts[1]
	before := a.Cast(t, "balance", receiver.Address)
	a.Send(t, sender, receiver.Address, "--value", "7")
	if height := a.Height(t); height != 1 {
		t.Errorf("one transaction made %d blocks", height)
	}
	a.Mine(t, 2)
	a.Reorg(t, 3)
	if height, balance := a.Height(t), a.Cast(t, "balance", receiver.Address); height != 3 || balance != before {
		t.Errorf("after the reorg there are %d blocks and %s wei; want 3 and %s", height, balance, before)
	}
}

// TestExtraReorgWithTransactions removes a block, and then replaces two blocks by two that
// hold one of their transactions.
func TestExtraReorgWithTransactions(t *testing.T) {
	t.Parallel()
	a := Start(t, Options{})
	sender, receiver := a.Accounts[0], a.Accounts[1]
	node, err := ethclient.DialContext(t.Context(), a.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Close)
	kept := common.HexToHash(a.Send(t, sender, receiver.Address, "--value", "7").TxHash)
	dropped := common.HexToHash(a.Send(t, sender, receiver.Address, "--value", "8").TxHash)
	tx, _, err := node.TransactionByHash(t.Context(), kept)
	if err != nil {
		t.Fatal(err)
	}
	before := a.Snapshot(t)
	undone := common.HexToHash(a.Send(t, sender, receiver.Address, "--value", "9").TxHash)
	a.Revert(t, before)
	if _, err := node.TransactionReceipt(t.Context(), undone); err == nil || a.Height(t) != 2 {
		t.Errorf("after a block was taken back there are %d, and its transaction is in the chain: %t", a.Height(t), err == nil)
	}
	a.Reorg(t, 2, nil, []*types.Transaction{tx})
	if receipt, err := node.TransactionReceipt(t.Context(), kept); err != nil || receipt.BlockNumber.Uint64() != 2 {
		t.Errorf("the transaction that came back has the receipt %+v, %v; want it in block 2", receipt, err)
	}
	if _, err := node.TransactionReceipt(t.Context(), dropped); err == nil {
		t.Error("the other one is still in the chain")
	}
}

func TestExtraBlockTime(t *testing.T) {
	t.Parallel()
	a := Start(t, Options{BlockTime: time.Second})
	deadline := time.Now().Add(castTimeout)
	for a.Height(t) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("no block was mined")
		}
	}
}
