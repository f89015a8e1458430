package main

import (
	"context"
	"errors"
	"fmt"
)

// quietBlocks are the blocks of ten minutes at two seconds each.
const quietBlocks = 300

// measureMemory measures the server's resident memory with many open invoices, each with its own address, while it
// back-fills a history and then follows blocks without payments. The baseline is the service with only the invoices
// that the history pays.
func measureMemory(ctx context.Context, r *measurement) error {
	n, err := r.holding(ctx, backfilled(r.Blocks))
	if err != nil {
		return err
	}
	few, many := n.payments(), max(r.Open, n.payments())
	var peak, later [2]float64
	for i, open := range []int{few, many} {
		if later[i], peak[i], err = r.memoryOf(ctx, n, open); err != nil {
			return fmt.Errorf("with %d open invoices: %w", open, err)
		}
	}
	baseline := fmt.Sprintf("with %d open invoices", few)
	r.slower(figure{
		What: fmt.Sprintf("peak of resident memory, %d open invoices, while %d payments are back-filled", many, few),
		Unit: "MB", Value: peak[1], Baseline: peak[0], BaselineIs: baseline,
	})
	r.slower(figure{
		What: fmt.Sprintf("resident memory, %d open invoices, %d blocks later", many, quietBlocks), Unit: "MB",
		Value: later[1], Baseline: later[0], BaselineIs: baseline,
	})
	return nil
}

// memoryOf returns a server's memory after a back-fill, and its peak.
func (r *measurement) memoryOf(ctx context.Context, n *node, open int) (now, peak float64, err error) {
	url, err := r.newFilled(ctx, fillConfig{History: &n.history, Open: open, Shared: n.payments(), Token: n.Token})
	if err != nil {
		return 0, 0, err
	}
	s, err := r.startServer(ctx, n, serverConfig{Database: url, StartBlock: &n.First})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := s.waitFilled(ctx); err != nil {
		return 0, 0, err
	}
	for range quietBlocks {
		if _, err := n.seal(""); err != nil {
			return 0, 0, err
		}
	}
	if err := s.waitCaughtUp(ctx); err != nil {
		return 0, 0, err
	}
	return s.memory()
}
