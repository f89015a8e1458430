package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// Limits of the search for who opened lost invoices.
const (
	// maxSenders bounds the transactions of a chain for which a report finds the signers. Invoices of
	// further ones are reported as lost.
	maxSenders = 10_000
	// sendersAtOnce is how many transactions are requested from a node in one call.
	sendersAtOnce = 100
)

// ReportedOpener is an account that opened or closed invoices which the database lacks, and that
// neither the database nor the configuration knows. It is the operator of another installation with
// the same registry, or an operator that was new after the backup.
type ReportedOpener struct {
	Account    string `json:"account"`
	Invoices   int    `json:"invoices"`
	FirstBlock uint64 `json:"firstBlock"`
}

// splitLost separates the lost invoices of unknown accounts from others, for a report. Invoices with
// an unknown signer are among the others. So are all of a chain without a known operator.
func (s *Server) splitLost(ctx context.Context, chainKey string, all []ledger.LostInvoice) (lost []ledger.LostInvoice, foreign []ReportedOpener, err error) {
	operators, err := s.operators(ctx, chainKey)
	if err != nil || len(operators) == 0 {
		return all, nil, err
	}
	senders, err := s.senders(ctx, chainKey, all)
	if err != nil {
		s.cfg.Logger.Warn("it is not known who opened some lost invoices, so the list may have invoices of another installation", "chain", chainKey, "err", err)
	}
	at := make(map[invoice.Address]int) // in foreign
	for _, l := range all {             // in the order of their blocks
		from, known := senders[l.TxHash]
		if !known || l.InvoiceID != "" || slices.Contains(operators, from) {
			lost = append(lost, l)
			continue
		}
		i, counted := at[from]
		if !counted {
			i = len(foreign)
			at[from] = i
			foreign = append(foreign, ReportedOpener{Account: from.String(), FirstBlock: max(l.Block, l.ClosedBlock)})
		}
		foreign[i].Invoices++
	}
	slices.SortStableFunc(foreign, func(a, b ReportedOpener) int { return cmp.Compare(b.Invoices, a.Invoices) })
	return lost, foreign, nil
}

// senders returns the signers of the transactions of lost invoices, as far as a node has the
// transactions. The signatures are the proof.
func (s *Server) senders(ctx context.Context, chainKey string, lost []ledger.LostInvoice) (map[invoice.Hash]invoice.Address, error) {
	run, found := s.byKey[chainKey], make(map[invoice.Hash]invoice.Address)
	asked := make(map[invoice.Hash]bool)
	var hashes []invoice.Hash
	for _, l := range lost {
		if l.InvoiceID == "" && !l.TxHash.IsZero() && !asked[l.TxHash] {
			asked[l.TxHash], hashes = true, append(hashes, l.TxHash)
		}
	}
	var left error
	if n := len(hashes) - maxSenders; n > 0 {
		left, hashes = fmt.Errorf("%d transactions are too many", n), hashes[:maxSenders]
	}
	for some := range slices.Chunk(hashes, sendersAtOnce) {
		answers, batch := make([]json.RawMessage, len(some)), make([]rpc.BatchElem, len(some))
		for i, hash := range some {
			batch[i] = rpc.BatchElem{Method: "eth_getTransactionByHash", Args: []any{common.Hash(hash)}, Result: &answers[i]}
		}
		calling, cancel := context.WithTimeout(ctx, chain.CallTimeout)
		err := run.pool.Writer().BatchCallContext(calling, batch)
		cancel()
		if err != nil {
			return found, errors.Join(left, err)
		}
		for i, hash := range some {
			if _, from, ok := signed(answers[i], hash, run.ID); ok {
				found[hash] = from
			}
		}
	}
	return found, left
}
