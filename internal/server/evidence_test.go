package server

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// withOperator returns a chain that the service writes to, and the operator's account.
func withOperator(t *testing.T) (config Chain, c *chaintest.Chain, node *chaintest.Node, account common.Address) {
	t.Helper()
	config, c, node = scriptedChain(t, "house", 7)
	key, err := crypto.GenerateKey()
	must(t, err)
	config.OperatorKey, config.Registry = key, invoice.Address{0x60}
	c.Contract(config.Registry)
	return config, c, node, crypto.PubkeyToAddress(key.PublicKey)
}

// starts starts the service, waits until it is ready, and stops it.
func starts(t *testing.T, url string, config Chain) {
	t.Helper()
	run := startServer(t, recoverConfig(url, config))
	await(t, run.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	run.stop()
	must(t, <-run.ended)
}

// isSuspected wants a start to end with evidence of a restore.
func isSuspected(t *testing.T, url string, config Chain, reason string) {
	t.Helper()
	cfg := recoverConfig(url, config)
	cfg.Listeners, cfg.Ready = listenOn(t, Address{}), func(string) { t.Error("it serves") }
	err := Run(t.Context(), cfg)
	var restored store.RestoredError
	if !errors.As(err, &restored) || restored.Recovery.State != store.RecoverySuspected || !strings.Contains(restored.Recovery.Reason, reason) {
		t.Errorf("it ended with %v", err)
	}
}

// TestCopiedFileIsNoticed puts a SQLite file back that was copied while the service was stopped. The operator has sent
// transactions since.
func TestCopiedFileIsNoticed(t *testing.T) {
	t.Parallel()
	config, c, _, account := withOperator(t)
	c.SetNonce(account, 5) // used before the first start
	url := storetest.Migrated(t)
	starts(t, url, config)
	text, err := os.ReadFile(strings.TrimPrefix(url, "sqlite:"))
	must(t, err)
	path := filepath.Join(t.TempDir(), "copy.db")
	must(t, os.WriteFile(path, text, 0o600))
	starts(t, "sqlite:"+path, config)
	c.SetNonce(account, 7)
	isSuspected(t, "sqlite:"+path, config, "has sent 7 transactions on house, and the database knows of 5")
}

// TestUnknownNonces has an operator use nonces that the database does not know, while the service is stopped.
func TestUnknownNonces(t *testing.T) {
	t.Parallel()
	for name, database := range storetest.MigratedDatabases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := database(t)
			config, c, node, account := withOperator(t)
			c.SetNonce(account, 5)
			starts(t, url, config)
			c.SetNonce(account, 4) // behind
			starts(t, url, config)

			c.SetNonce(account, 7)
			node.Intercept(func(_ context.Context, method string) error {
				if method == "eth_getTransactionCount" {
					return errors.New("not now")
				}
				return nil
			})
			starts(t, url, config)
			node.Intercept(nil)
			for range 2 {
				isSuspected(t, url, config, "has sent 7 transactions")
			}
			_, err := Recover(t.Context(), recoverConfig(url, config), RecoverOptions{})
			must(t, err)
			starts(t, url, config)
			c.SetNonce(account, 8)
			isSuspected(t, url, config, "has sent 8 transactions")
			_, err = Recover(t.Context(), recoverConfig(url, config), RecoverOptions{Dismiss: true})
			must(t, err)
			for sent := range uint64(3) {
				c.SetNonce(account, 8+sent)
				starts(t, url, config)
			}
		})
	}
}

// signedBy returns a call of the registry that is signed with a key.
func signedBy(t *testing.T, key *ecdsa.PrivateKey, nonce uint64, registry invoice.Address, logs ...chaintest.Log) chaintest.Tx {
	t.Helper()
	to := common.Address(registry)
	tx, err := types.SignNewTx(key, types.LatestSignerForChainID(big.NewInt(7)), &types.DynamicFeeTx{ChainID: big.NewInt(7), Nonce: nonce, Gas: 1, To: &to})
	must(t, err)
	return chaintest.SignedTx(tx, logs...)
}

// TestUnknownRegistryEvents has a registry that two services share announce commitments that the database does not
// know. Those of the other service prove nothing.
func TestUnknownRegistryEvents(t *testing.T) {
	t.Parallel()
	for name, database := range storetest.MigratedDatabases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := database(t)
			config, c, _, account := withOperator(t)
			c.SetNonce(account, 5)
			run := startServer(t, recoverConfig(url, config))
			await(t, run.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
			other, err := crypto.GenerateKey()
			must(t, err)
			c.Mine(signedBy(t, other, 5, config.Registry, chaintest.Opened(config.Registry, invoice.Hash{1})))
			c.Mine(signedBy(t, config.OperatorKey, 4, config.Registry, chaintest.Opened(config.Registry, invoice.Hash{2})))
			c.Mine(chaintest.NewTx(chaintest.Closed(config.Registry, invoice.Hash{1})))
			c.Mine(signedBy(t, config.OperatorKey, 5, config.Registry, chaintest.Opened(config.Registry, invoice.Hash{3})))
			h := await(t, run.url, "the restore", func(status int, h health) bool { return status == http.StatusServiceUnavailable && h.Restored != "" })
			if !strings.Contains(h.Restored, "with nonce 5") {
				t.Errorf("the reason is %q", h.Restored)
			}
			run.stop()
			must(t, <-run.ended)
			isSuspected(t, url, config, "with nonce 5 changed the registry on house")
		})
	}
}

// TestForeignCommitments recovers a database whose registry another installation uses, too. Its invoices are not reported as
// lost, and remain known: once its account is the operator, they are lost ones.
func TestForeignCommitments(t *testing.T) {
	t.Parallel()
	for name, database := range storetest.MigratedDatabases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := database(t)
			config, c, node, account := withOperator(t)
			starts(t, url, config)
			other, err := crypto.GenerateKey()
			must(t, err)
			opened := func(id byte) chaintest.Log { return chaintest.Opened(config.Registry, invoice.Hash{id}) }
			c.Mine(signedBy(t, other, 0, config.Registry, opened(1), opened(2)))
			c.Mine(signedBy(t, config.OperatorKey, 0, config.Registry, opened(3)))
			c.Mine(signedBy(t, other, 1, config.Registry, chaintest.Closed(config.Registry, invoice.Hash{4}))) // opened before the backup
			c.Mine(chaintest.NewTx(opened(5)))                                                                 // its signature is not known
			c.Mine(chaintest.NewTx(chaintest.Paid(config.Registry, invoice.Hash{6}, invoice.Address{0xbb}, invoice.Address{0x99}, testToken, invoice.NewAmount(1))))
			reported := func(foreign string, lost ...byte) {
				t.Helper()
				report, err := Recover(t.Context(), recoverConfig(url, config), RecoverOptions{})
				must(t, err)
				var want, got []string
				for _, id := range lost {
					want = append(want, invoice.Hash{id}.String())
				}
				for _, l := range report.Chains[0].Lost {
					got = append(got, l.OnChainID)
				}
				if !slices.Equal(got, want) {
					t.Errorf("lost are %v, want %v", got, want)
				}
				var others []string
				for _, o := range report.Chains[0].Foreign {
					others = append(others, fmt.Sprint(o.Account, " ", o.Invoices, " from ", o.FirstBlock))
					if text := report.Markdown(); !strings.Contains(text, o.Account) {
						t.Errorf("the document lacks account %s:\n%s", o.Account, text)
					}
				}
				if got := strings.Join(others, ", "); got != foreign {
					t.Errorf("unknown accounts are %q, want %q", got, foreign)
				}
			}
			theirs := invoice.Address(crypto.PubkeyToAddress(other.PublicKey))
			reported(theirs.String()+" 3 from 4", 3, 5, 6)
			node.Intercept(func(_ context.Context, method string) error {
				if method == "eth_getTransactionByHash" {
					return errors.New("not now")
				}
				return nil
			})
			reported("", 1, 2, 3, 4, 5, 6) // better too many than too few
			node.Intercept(nil)
			config.OperatorKey = other // configured after the backup
			reported(invoice.Address(account).String()+" 1 from 5", 1, 2, 4, 5, 6)
		})
	}
}
