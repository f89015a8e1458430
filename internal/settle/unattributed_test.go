package settle_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/invoice"
)

// TestUnattributedPaymentsAreToldOf says that one is told of when it is stored,
// once, and none that has an invoice.
func TestUnattributedPaymentsAreToldOf(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *database) {
		w := db.world(t)
		inv := w.create()
		p := w.stray(start+10, invoice.NewAmount(990_000))
		w.mine(start+11, w.pay(inv.TransferAmount))
		w.final()
		if diff := cmp.Diff([]string{p.ID}, w.unclear); diff != "" {
			t.Errorf("told of (-want +got):\n%s", diff)
		}
	})
}
