package api_test

import (
	"context"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// The tests of package dashboard cover decisions about items; this backend has no items.

func (b *backend) Inbox(ctx context.Context, _ ledger.InboxFilter) ([]ledger.InboxItem, string, error) {
	return nil, "", b.fail(ctx)
}

func (b *backend) InboxCounts(ctx context.Context, _ string) ([]ledger.InboxCount, error) {
	return nil, b.fail(ctx)
}

func (b *backend) Decide(context.Context, ledger.DecisionRequest) (invoice.Decision, error) {
	return invoice.Decision{}, db.ErrNotFound
}

func (b *backend) UndoDecision(context.Context, string, string) (invoice.Decision, error) {
	return invoice.Decision{}, db.ErrNotFound
}

func (b *backend) Decisions(ctx context.Context, _ ledger.DecisionFilter) ([]invoice.Decision, error) {
	return nil, b.fail(ctx)
}
