package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestDecisions stores decisions, lists them, and takes one back.
func TestDecisions(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		ctx := t.Context()
		decision := func(id, object, merchant string) invoice.Decision {
			return invoice.Decision{
				ID: id, MerchantID: merchant, Kind: invoice.ItemLate, ObjectID: object, Version: "1", Outcome: invoice.Dismissed, Reason: "was refunded by hand", By: "maria", At: rowtest.At(10),
			}
		}
		first, second := decision("dec_1", "inv_1", "acme"), decision("dec_2", "inv_2", "globex")
		insert := func(d invoice.Decision) error {
			return s.Update(ctx, func(tx *db.Tx) error { return ledger.InsertDecision(ctx, tx, d) })
		}
		rowtest.Must(t, insert(first))
		rowtest.Must(t, insert(second))
		if err := insert(decision("dec_3", "inv_1", "acme")); err == nil {
			t.Error("two decisions about one version are in force")
		}
		got, err := ledger.DecisionsInForce(ctx, s, []string{"inv_1", "inv_3"})
		rowtest.Must(t, err)
		if diff := cmp.Diff([]invoice.Decision{first}, got); diff != "" {
			t.Errorf("in force (-want +got):\n%s", diff)
		}
		undone := first
		undone.UndoneBy, undone.UndoneAt = "juan", rowtest.At(20)
		rowtest.Must(t, s.Update(ctx, func(tx *db.Tx) error { return ledger.UndoDecision(ctx, tx, undone) }))
		rowtest.Must(t, insert(decision("dec_4", "inv_1", "acme")))
		listed, err := ledger.NewReader(s).Decisions(ctx, ledger.DecisionFilter{MerchantID: "acme", Limit: 9})
		rowtest.Must(t, err)
		if diff := cmp.Diff([]invoice.Decision{decision("dec_4", "inv_1", "acme"), undone}, listed); diff != "" {
			t.Errorf("listed (-want +got):\n%s", diff)
		}
	})
}
