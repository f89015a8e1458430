package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// recordDecisions reads decisions, submissions of refunds, and sessions of the dashboard.
func recordDecisions(t *testing.T, read *store.Store, what *string) {
	t.Helper()
	for _, merchant := range []string{"", "m"} {
		*what = "decisions: of " + merchant
		_, err := read.Decisions(t.Context(), store.DecisionFilter{MerchantID: merchant, Before: "dec_9", Limit: 50})
		must(t, err)
		*what = "sessions: of " + merchant
		_, err = read.Sessions(t.Context(), store.SessionFilter{MerchantID: merchant, Limit: 50})
		must(t, err)
	}
	recordInbox(t, read, what)
	*what = "decisions: in force"
	_, err := read.DecisionsInForce(t.Context(), []string{"pay_1", "pay_2"})
	must(t, err)
	*what = "submissions: of a refund"
	_, err = read.Submissions(t.Context(), "ref_1")
	must(t, err)
	*what = "decisions: of an object"
	_, err = read.Decisions(t.Context(), store.DecisionFilter{ObjectID: "pay_1", Limit: 50})
	must(t, err)
	*what = "sessions: of a key"
	_, err = read.Sessions(t.Context(), store.SessionFilter{KeyID: "key_1", Limit: 50})
	must(t, err)
}

// TestDecisions stores decisions, lists them, and takes one back.
func TestDecisions(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		decision := func(id, object, merchant string) invoice.Decision {
			return invoice.Decision{
				ID: id, MerchantID: merchant, Kind: invoice.ItemLate, ObjectID: object, Version: "1", Outcome: invoice.Dismissed, Reason: "was refunded by hand", By: "maria", At: at(10),
			}
		}
		first, second := decision("dec_1", "inv_1", "acme"), decision("dec_2", "inv_2", "globex")
		insert := func(d invoice.Decision) error {
			return s.Update(ctx, func(tx *store.Tx) error { return tx.InsertDecision(ctx, d) })
		}
		must(t, insert(first))
		must(t, insert(second))
		if err := insert(decision("dec_3", "inv_1", "acme")); err == nil {
			t.Error("two decisions about one version are in force")
		}
		got, err := s.DecisionsInForce(ctx, []string{"inv_1", "inv_3"})
		must(t, err)
		if diff := cmp.Diff([]invoice.Decision{first}, got); diff != "" {
			t.Errorf("in force (-want +got):\n%s", diff)
		}
		undone := first
		undone.UndoneBy, undone.UndoneAt = "juan", at(20)
		must(t, s.Update(ctx, func(tx *store.Tx) error { return tx.UndoDecision(ctx, undone) }))
		must(t, insert(decision("dec_4", "inv_1", "acme")))
		listed, err := s.Decisions(ctx, store.DecisionFilter{MerchantID: "acme", Limit: 9})
		must(t, err)
		if diff := cmp.Diff([]invoice.Decision{decision("dec_4", "inv_1", "acme"), undone}, listed); diff != "" {
			t.Errorf("listed (-want +got):\n%s", diff)
		}
	})
}
