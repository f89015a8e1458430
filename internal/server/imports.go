package server

import (
	"context"
	"errors"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/ledger"
)

// Importer creates invoices of merchants' copies in the database of a service that is stopped.
type Importer struct {
	server *Server
	close  func() error
}

// OpenImporter opens the database of a service. It fails while a service uses it, and before a recovery of a copy.
func OpenImporter(ctx context.Context, cfg Config) (_ *Importer, err error) {
	s, closeAll, err := openAlone(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll())
		}
	}()
	state, err := s.store.Recovery(ctx)
	if err != nil {
		return nil, err
	}
	if state.State != db.RecoveryUnderWay && state.Err() != nil {
		return nil, state.Err()
	}
	return &Importer{s, closeAll}, s.build(ctx)
}

// Import creates the invoice of a copy. *ledger.Service documents the errors.
func (i *Importer) Import(ctx context.Context, c ledger.InvoiceCopy) (ledger.Imported, error) {
	var secrets []string
	if id := c.Invoice.MerchantID; c.Signature != "" {
		found, err := i.server.endpoints.Endpoints(ctx, []string{id})
		if err != nil {
			return ledger.Imported{}, err
		}
		secrets = append([]string{found[id].Secret}, found[id].Others...)
	}
	return i.server.settle.ImportInvoice(ctx, c, secrets)
}

// Close closes the database.
func (i *Importer) Close() error { return i.close() }
