package server

import (
	"context"
	"errors"

	"github.com/quittance/quittance/internal/settle"
	"github.com/quittance/quittance/internal/store"
)

// Importer creates invoices of merchants' copies in the database of a service that is stopped.
type Importer struct {
	server *Server
	unlock func() error
}

// OpenImporter opens the database of a service. It fails while a service uses it, and before a recovery of a copy.
func OpenImporter(ctx context.Context, cfg Config) (_ *Importer, err error) {
	s, err := newServer(cfg)
	if err != nil {
		return nil, err
	}
	s.recovering = true // nothing is sent by this process
	unlock, err := store.LockService(cfg.Database)
	if err != nil {
		return nil, err
	}
	i := &Importer{s, unlock}
	defer func() {
		if err != nil {
			err = errors.Join(err, i.Close())
		}
	}()
	if s.store, err = store.Open(ctx, cfg.Database); err != nil {
		return i, err
	}
	if err := s.checkAlone(ctx); err != nil {
		return i, err
	}
	state, err := s.store.Recovery(ctx)
	if err != nil {
		return i, err
	}
	if state.State != store.RecoveryUnderWay && state.Err() != nil {
		return i, state.Err()
	}
	return i, s.build(ctx)
}

// Import creates the invoice of a copy. *settle.Service documents the errors.
func (i *Importer) Import(ctx context.Context, c settle.InvoiceCopy) (settle.Imported, error) {
	var secrets []string
	if id := c.Invoice.MerchantID; c.Signature != "" {
		found, err := i.server.endpoints.Endpoints(ctx, []string{id})
		if err != nil {
			return settle.Imported{}, err
		}
		secrets = append([]string{found[id].Secret}, found[id].Others...)
	}
	return i.server.settle.ImportInvoice(ctx, c, secrets)
}

// Close closes the database.
func (i *Importer) Close() (err error) {
	if i.server.store != nil {
		i.server.closePools()
		err = i.server.store.Close()
	}
	return errors.Join(err, i.unlock())
}
