package ledger

import (
	"github.com/quittance/quittance/internal/invoice"
)

// A commitment is opened in the registry when its invoice is created, or opened from a draft. It is
// closed when the invoice expires, becomes void, or is paid without the registry; the registry itself
// closes invoices that are paid through it (invoice.Invoice.CloseIntent).

// enqueueIntent adds an intent to the outbox, if the invoice's commitment names a registry. The
// transaction manager ignores the intent while another registry is configured.
func (s *Service) enqueueIntent(out *outbox, kind invoice.IntentKind, inv invoice.Invoice) {
	if inv.Registry.IsZero() || !s.byKey[inv.ChainKey].Commits(inv) {
		return
	}
	out.intents = append(out.intents, Intent{
		ID: s.ids.New(invoice.PrefixIntent), ChainKey: inv.ChainKey, InvoiceID: inv.ID,
		CommitmentID: inv.CommitmentID, Registry: inv.Registry, Kind: kind, CreatedAt: s.seconds(),
	})
}
