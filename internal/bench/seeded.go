package main

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/quittance/quittance/internal/devchain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/seed"
	"github.com/quittance/quittance/internal/store"
)

// startSeeded starts a server on an empty database that it fills with rows.
func startSeeded(ctx context.Context, database string, rows *seed.Maker) (_ *world, err error) {
	node, err := devchain.Start(ctx, devchain.Config{})
	if err != nil {
		return nil, err
	}
	if err := loadRows(ctx, database, node, rows); err != nil {
		return nil, errors.Join(err, node.Close())
	}
	return startOn(ctx, node, serverConfig{Database: database})
}

// loadRows fills an empty database with rows, as if the service had read the node's chain.
func loadRows(ctx context.Context, database string, node *devchain.Chain, rows *seed.Maker) (err error) {
	head, err := newestBlock(ctx, node)
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.Load(ctx, func(yield func(store.Rows, error) bool) {
		for r, err := range rows.Batches() {
			for i := range r.Chains {
				r.Chains[i].Head = head
			}
			if !yield(r, err) {
				return
			}
		}
	}, func(store.LoadProgress) {})
}

// newestBlock returns the newest block of a node.
func newestBlock(ctx context.Context, node *devchain.Chain) (invoice.Header, error) {
	head, err := node.Client().HeaderByNumber(ctx, nil)
	if err != nil {
		return invoice.Header{}, err
	}
	return invoice.Header{Number: head.Number.Uint64(), Hash: invoice.Hash(head.Hash()), Time: time.Unix(int64(head.Time), 0)}, nil
}

// appendRows inserts rows into a database that a server uses.
func appendRows(ctx context.Context, url string, rows iter.Seq2[store.Rows, error]) (err error) {
	s, err := store.Open(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for r, err := range rows {
		if err == nil {
			err = s.Append(ctx, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
