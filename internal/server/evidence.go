package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/txmgr"
)

// errNoForeignTx is a node's answer that it does not have a transaction, although its event was read.
var errNoForeignTx = errors.New("the node does not have the transaction")

// maxForeignTxs bounds the transactions of a chain that wait to be judged. A registry that is shared
// with other services has many. Others are dropped: the operator's nonces show the same.
const maxForeignTxs = 1000

// maxDeployments is how many transactions two runs of `quittance chain deploy` send: the second run
// follows a mistake in the first.
const maxDeployments = 6

const (
	// foreignTries is how often a node is asked for a transaction: it may not have it yet.
	foreignTries = 5
	// foreignRetry is the time between them.
	foreignRetry = time.Second
)

// compareNonces returns an error that explains what to do if operators have used nonces that the
// database does not know. A chain with nodes that do not answer does not keep the service from
// starting: its transaction manager compares again before it sends a transaction.
func (s *Server) compareNonces(ctx context.Context) error {
	var group errgroup.Group
	for _, run := range s.chains {
		group.Go(func() error {
			if run.writer == nil {
				return txmgr.ForgetOperators(ctx, s.store, run.Key)
			}
			allowed, err := s.allowedNonces(ctx, run.Chain)
			if err != nil {
				return err
			}
			return run.writer.CompareNonces(ctx, allowed)
		})
	}
	if err := group.Wait(); err != nil || s.cfg.Isolated {
		return err
	}
	r, err := s.store.Recovery(ctx)
	if err != nil {
		return err
	}
	return r.Err()
}

// allowedNonces returns how many nonces of an operator are not evidence although the database does not
// know them: any number while a replica runs, which compares nonces too, and the nonces of deployments
// if a contract is new in the configuration.
func (s *Server) allowedNonces(ctx context.Context, c chain.Chain) (uint64, error) {
	if s.replica != "" {
		if live, err := s.store.HasLiveReplica(ctx, s.clock.Now()); err != nil || live {
			return txmgr.AnyNonces, err
		}
	}
	known, err := ledger.Remembered(ctx, s.store)
	if err != nil {
		return 0, err
	}
	registries, err := ledger.Registries(ctx, s.store, c.Key)
	if err != nil {
		return 0, err
	}
	before, _ := known.Chain(c.Key)
	used := slices.Concat(registries, before.Factories, before.Relays)
	for _, a := range []invoice.Address{c.Registry, c.DepositFactory, c.AuthorizationRelay} {
		if !a.IsZero() && !slices.Contains(used, a) {
			return maxDeployments, nil
		}
	}
	return 0, nil
}

// queueForeignTx queues a transaction that changed a registry and is not stored, to be judged.
func (s *Server) queueForeignTx(chainKey string, tx invoice.Hash) {
	run := s.byKey[chainKey]
	if run == nil || s.cfg.Isolated {
		return
	}
	select {
	case run.foreign <- tx:
	default:
		s.cfg.Logger.Debug("transaction of the registry not examined, too many wait", "chain", chainKey, "tx", tx)
	}
}

// judgeForeignTxs judges transactions until ctx ends.
func (s *Server) judgeForeignTxs(ctx context.Context, run *chainWorkers) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case tx := <-run.foreign:
			err := s.judgeForeignTx(ctx, run, tx)
			for try := 1; err != nil && try < foreignTries && clock.Sleep(ctx, foreignRetry, nil); try++ {
				err = s.judgeForeignTx(ctx, run, tx)
			}
			if err != nil && ctx.Err() == nil {
				s.cfg.Logger.Warn("it was not examined who sent a transaction of the registry", "chain", run.Key, "tx", tx, "err", err)
			}
		}
	}
}

// judgeForeignTx records evidence that the database was restored if one of the service's operators
// signed the transaction. The signature is proof even if the node lies or the block is not final.
func (s *Server) judgeForeignTx(ctx context.Context, run *chainWorkers, hash invoice.Hash) error {
	calling, cancel := context.WithTimeout(ctx, chain.CallTimeout)
	defer cancel()
	var raw json.RawMessage
	if err := run.pool.Writer().CallContext(calling, &raw, "eth_getTransactionByHash", common.Hash(hash)); err != nil {
		return fmt.Errorf("eth_getTransactionByHash: %w", err)
	}
	if len(raw) == 0 || string(raw) == "null" {
		return errNoForeignTx
	}
	tx, from, ok := signed(raw, hash, run.ID)
	if !ok { // it is of a kind that this service does not send
		return nil
	}
	_, err := txmgr.NoteSigned(ctx, s.store, run.Key, from, tx.Nonce(), hash, s.cfg.Now()) // ignores other services
	return err
}

// signed returns the transaction of a hash from a node's answer, and who signed it for the chain. ok
// is false if the answer is for another hash, or the transaction is of an unknown kind.
func signed(raw json.RawMessage, hash invoice.Hash, chainID uint64) (tx *types.Transaction, from invoice.Address, ok bool) {
	tx = new(types.Transaction)
	if err := tx.UnmarshalJSON(raw); err != nil || tx.Hash() != common.Hash(hash) || tx.ChainId().Uint64() != chainID {
		return nil, from, false
	}
	signer, err := types.Sender(types.LatestSignerForChainID(tx.ChainId()), tx)
	return tx, invoice.Address(signer), err == nil
}

// operators returns the accounts of a chain's operator: the configured one, and the accounts of stored
// transactions.
func (s *Server) operators(ctx context.Context, chainKey string) ([]invoice.Address, error) {
	all, err := txmgr.Operators(ctx, s.store, chainKey)
	for _, c := range s.cfg.Chains {
		if c.Key == chainKey && c.OperatorKey != nil {
			all = append(all, invoice.Address(crypto.PubkeyToAddress(c.OperatorKey.PublicKey)))
		}
	}
	return all, err
}
