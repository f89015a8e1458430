package chain

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/invoice"
)

// patience is how long the named chain has to answer before the other chains are asked. After one of
// them has the transaction, it is how long its report waits for the named chain.
const patience = 300 * time.Millisecond

// search asks the chains for a transaction.
type search struct {
	sources []Source
	named   int
	tx      invoice.Hash
	to      invoice.Address
	answers chan answer

	own    *answer // of the named chain
	found  *answer // of another chain that has it
	asked  bool    // the other chains were asked
	missed int     // other chains that have not answered
}

// answer is a chain's answer.
type answer struct {
	source int
	report Report
	err    error
}

// has reports whether the chain has the transaction.
func (a answer) has() bool { return a.err == nil && a.report.State != Unknown }

// Transaction returns the report of a transaction on the named chain, or on another chain if only that
// has it. Transfers lists the transfers to the given address or, if there is no such transfer, all.
// The error is ErrUnavailable if the named chain's node fails and no other chain has the transaction.
func (i *Inspector) Transaction(ctx context.Context, chainKey string, tx invoice.Hash, to invoice.Address) (Report, error) {
	s := search{sources: i.sources, named: i.indexOf(chainKey), tx: tx, to: to, answers: make(chan answer, len(i.sources))}
	if s.named < 0 {
		return Report{}, fmt.Errorf("%w: chain %s is not configured", ErrUnavailable, chainKey)
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	report, err := s.run(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("%w for chain %s: %w", ErrUnavailable, chainKey, err)
	}
	return report, nil
}

func (i *Inspector) indexOf(chainKey string) int {
	return slices.IndexFunc(i.sources, func(s Source) bool { return s.Chain.Key == chainKey })
}

// run returns the report, or the error of the named chain.
func (s *search) run(ctx context.Context) (Report, error) {
	s.ask(ctx, s.named)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		late := false
		select {
		case a := <-s.answers:
			if s.take(a); s.found != nil {
				timer.Reset(patience)
			}
		case <-timer.C:
			late = true
		case <-ctx.Done():
			return Report{}, ctx.Err()
		}
		if !s.asked && (late || s.own != nil && !s.own.has()) {
			s.askOthers(ctx)
		}
		if a, ok := s.result(late); ok {
			return a.report, a.err
		}
	}
}

// result returns the answer to the search, if it is known. late is set when the named chain has used up its time.
func (s *search) result(late bool) (answer, bool) {
	switch {
	case s.own != nil && s.own.has():
		return *s.own, true
	case s.found != nil && (s.own != nil || late):
		return *s.found, true
	case s.own != nil && s.missed == 0:
		return *s.own, true
	}
	return answer{}, false
}

// take records an answer.
func (s *search) take(a answer) {
	if a.source == s.named {
		s.own = &a
		return
	}
	s.missed--
	if a.has() && s.found == nil {
		s.found = &a
	}
}

func (s *search) ask(ctx context.Context, source int) {
	go func() {
		report, err := s.sources[source].transaction(ctx, s.sources[source].Node, s.tx, s.to)
		s.answers <- answer{source, report, err}
	}()
}

func (s *search) askOthers(ctx context.Context) {
	s.asked = true
	for n := range s.sources {
		if n != s.named {
			s.missed++
			s.ask(ctx, n)
		}
	}
}

// IsReplaced reports whether the chain has another transaction of the sender with the nonce or a later one in a block,
// so that an unknown one with the nonce can no longer be mined. The error is ErrUnavailable.
func (i *Inspector) IsReplaced(ctx context.Context, chainKey string, sender invoice.Address, nonce uint64) (bool, error) {
	n := i.indexOf(chainKey)
	if n < 0 {
		return false, fmt.Errorf("%w: chain %s is not configured", ErrUnavailable, chainKey)
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	var count Quantity
	batch := []rpc.BatchElem{{Method: "eth_getTransactionCount", Args: []any{common.Address(sender), "latest"}, Result: &count}}
	err := i.sources[n].Node.BatchCallContext(ctx, batch)
	if err == nil {
		err = batch[0].Error
	}
	if err != nil {
		return false, fmt.Errorf("%w for chain %s: %w", ErrUnavailable, chainKey, err)
	}
	return count.N > nonce, nil
}
