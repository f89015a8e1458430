package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ethereum/go-ethereum/ethclient"

	"github.com/quittance/quittance/internal/chain"
)

const (
	// countedBlocks is how many blocks the calls are counted for.
	countedBlocks = 50
	// warmBlocks come before them.
	warmBlocks = 5
	// quiet is a poll interval that is longer than a measurement.
	quiet = time.Hour
	// caughtUpPatience bounds the wait until the server has read all blocks.
	caughtUpPatience = time.Minute
)

// measureCalls counts the JSON-RPC calls that a block costs, each of a batch
// counted, without payments and with one in each block. A subscription wakes
// the server; polls, of which each costs one request, are left out.
func (b *bench) measureCalls(ctx context.Context, kind string) error {
	if kind != "sqlite" {
		return nil // the database changes nothing of it
	}
	for _, f := range []chain.Finality{{Depth: 2}, {Tag: chain.TagFinalized}} {
		if err := b.calls(ctx, kind, f); err != nil {
			return fmt.Errorf("finality %s: %w", f, err)
		}
	}
	return nil
}

func (b *bench) calls(ctx context.Context, kind string, f chain.Finality) (err error) {
	database, err := b.url(ctx, kind, "calls_"+f.String())
	if err != nil {
		return err
	}
	w, err := b.start(ctx, serverConfig{Database: database, Finality: f, PollInterval: quiet})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	if _, err := w.callsOf(ctx, warmBlocks, func() error { return nil }); err != nil {
		return err
	}
	idle, err := w.callsOf(ctx, countedBlocks, func() error { return nil })
	if err != nil {
		return err
	}
	busy, err := w.callsOf(ctx, countedBlocks, func() error {
		made, err := w.request(ctx)
		if err != nil {
			return err
		}
		return w.pay(ctx, made)
	})
	if err != nil {
		return err
	}
	b.report.row(kind, fmt.Sprintf("RPC calls for an idle block, finality %s", f), fmt.Sprintf("%.2f", idle), "", "",
		fmt.Sprintf("mean of %d; by subscription", countedBlocks))
	b.report.row(kind, fmt.Sprintf("RPC calls for a payment, finality %s", f), fmt.Sprintf("%.2f", busy-idle), "", "",
		"more than for an idle block, from seen to paid")
	return nil
}

// callsOf seals blocks one by one, each after before, and returns how many
// calls the server made for one.
func (w *world) callsOf(ctx context.Context, blocks int, before func() error) (float64, error) {
	first, err := w.server.callsMade(ctx)
	if err != nil {
		return 0, err
	}
	for range blocks {
		if err := before(); err != nil {
			return 0, err
		}
		if err := w.node.Seal(ctx); err != nil {
			return 0, err
		}
		if err := w.server.caughtUp(ctx, w.node.RPCURL()); err != nil {
			return 0, err
		}
	}
	last, err := w.server.callsMade(ctx)
	return float64(last-first) / float64(blocks), err
}

// status has the members of GET /status that are used.
type status struct {
	Head, Indexed, Confirmed uint64
	Finality                 string
	Error                    string
	Providers                []struct{ Calls uint64 }
}

func (s *service) status(ctx context.Context) (st status, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/status", nil)
	if err != nil {
		return status{}, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return status{}, err
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	var body struct{ Chains []status }
	if err := json.NewDecoder(res.Body).Decode(&body); err != nil {
		return status{}, fmt.Errorf("GET /status: %s: %w", res.Status, err)
	}
	if len(body.Chains) != 1 {
		return status{}, fmt.Errorf("GET /status has %d chains; want 1", len(body.Chains))
	}
	return body.Chains[0], nil
}

// callsMade returns the number of calls of the server so far.
func (s *service) callsMade(ctx context.Context) (calls uint64, err error) {
	st, err := s.status(ctx)
	for _, p := range st.Providers {
		calls += p.Calls
	}
	return calls, err
}

// caughtUp waits until the server has read the node's newest block and has
// confirmed what is final by it, or by the block before: the embedded node
// moves its tags a moment after it has announced a block.
func (s *service) caughtUp(ctx context.Context, node string) error {
	ctx, cancel := context.WithTimeout(ctx, caughtUpPatience)
	defer cancel()
	c, err := ethclient.DialContext(ctx, node)
	if err != nil {
		return err
	}
	defer c.Close()
	head, err := c.BlockNumber(ctx)
	if err != nil {
		return err
	}
	for poll := time.NewTicker(storedPoll); ; {
		st, err := s.status(ctx)
		if err != nil {
			return err
		}
		if st.Indexed == head && st.Confirmed+finalDepth+1 >= head {
			return nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("wait until block %d is read: %w; the server says %+v", head, ctx.Err(), st)
		}
	}
}

// finalDepth is how many blocks are above a final one: that of the chain
// "local", and of the embedded node's tags.
const finalDepth = 2
