package server

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
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
	var restored db.RestoredError
	if !errors.As(err, &restored) || restored.Recovery.State != db.RecoverySuspected || !strings.Contains(restored.Recovery.Reason, reason) {
		t.Errorf("it ended with %v", err)
	}
}

// TestUnknownNonces uses nonces of an operator that the database does not know, while the service is stopped.
func TestUnknownNonces(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
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

// TestDeploymentIsNoEvidence deploys contracts from the operator's account while the service is stopped, and configures
// one of them. Later, or with more than the deployments, unknown nonces are evidence again.
func TestDeploymentIsNoEvidence(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		config, c, _, account := withOperator(t)
		c.SetNonce(account, 5)
		starts(t, url, config)
		c.SetNonce(account, 5+maxDeployments)
		config.Registry = invoice.Address{0x61}
		c.Contract(config.Registry)
		starts(t, url, config)
		starts(t, url, config)
		config.Registry = invoice.Address{0x62}
		c.Contract(config.Registry)
		c.SetNonce(account, 6+2*maxDeployments)
		isSuspected(t, url, config, "has sent 18 transactions on house, and the database knows of 11")
	})
}

// TestNoncesWhileAnotherReplicaRuns starts a replica after a person has sent with the operator's key. The replica that
// runs has noticed no loss.
func TestNoncesWhileAnotherReplicaRuns(t *testing.T) {
	t.Parallel()
	url := dbtest.MigratedPostgres(t)
	config, c, _, account := withOperator(t)
	c.SetNonce(account, 5)
	run := startServer(t, recoverConfig(url, config))
	await(t, run.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	c.SetNonce(account, 6)
	starts(t, url, config)
	run.stop()
	must(t, <-run.ended)
	c.SetNonce(account, 7)
	isSuspected(t, url, config, "has sent 7 transactions on house, and the database knows of 6")
}

// TestKeyThatReturns removes an operator's key, and gives it back after coins were moved by hand.
func TestKeyThatReturns(t *testing.T) {
	t.Parallel()
	url := dbtest.Migrated(t)
	config, c, _, account := withOperator(t)
	starts(t, url, config)
	without := config
	without.OperatorKey = nil
	starts(t, url, without)
	c.SetNonce(account, 1)
	starts(t, url, config)
}

// TestRegistryTransactionThatANodeLacks asks who sent a transaction of the registry. The node first
// fails, and then does not have the transaction yet.
func TestRegistryTransactionThatANodeLacks(t *testing.T) {
	t.Parallel()
	config, c, node, _ := withOperator(t)
	lacking := chaintest.NewProxy(t, node, 1)
	lacking.SetFaults(chaintest.Only{Methods: []string{"eth_getTransactionByHash"}, Fault: chaintest.Null{}})
	failing := chaintest.NewProxy(t, node, 1)
	failing.SetFaults(chaintest.Only{Methods: []string{"eth_getTransactionByHash"}, Fault: chaintest.Fail{}})
	var tries atomic.Int64
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		expect.NoError(t, err)
		r.Body = io.NopCloser(bytes.NewReader(body))
		nodes := []http.Handler{failing, lacking, node}
		if !bytes.Contains(body, []byte("eth_getTransactionByHash")) {
			node.ServeHTTP(w, r)
			return
		}
		nodes[min(tries.Add(1), 3)-1].ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	config.RPC = []string{front.URL}
	run := startServer(t, recoverConfig(dbtest.Migrated(t), config))
	await(t, run.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	c.Mine(signedBy(t, config.OperatorKey, 0, config.Registry, chaintest.Opened(config.Registry, invoice.Hash{3})))
	await(t, run.url, "the restore", func(status int, h health) bool { return status == http.StatusServiceUnavailable && h.Restored != "" })
	run.stop()
	must(t, <-run.ended)
}

// signedBy returns a call of the registry that is signed with a key.
func signedBy(t *testing.T, key *ecdsa.PrivateKey, nonce uint64, registry invoice.Address, logs ...chaintest.Log) chaintest.Tx {
	t.Helper()
	to := common.Address(registry)
	tx, err := types.SignNewTx(key, types.LatestSignerForChainID(big.NewInt(7)), &types.DynamicFeeTx{ChainID: big.NewInt(7), Nonce: nonce, Gas: 1, To: &to})
	must(t, err)
	return chaintest.SignedTx(tx, logs...)
}

// TestUnknownRegistryEvents announces commitments that the database does not know, in a registry that
// two services share. The other service's commitments are no evidence.
func TestUnknownRegistryEvents(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
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

// TestForeignCommitments recovers a database with a registry that another installation uses, too. The other's invoices
// are not reported as lost, and remain known: if its account becomes the operator, they are lost ones.
func TestForeignCommitments(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
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
