package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
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

// TestIntegrationInbox dismisses an approval twice, and undoes the decision.
func TestIntegrationInbox(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		s := newIntegration(t, store)
		payment, _ := s.confirmedPayment(t)
		asked := decode[apitypes.RefundResponse](t, do(s.handler, "POST", "/api/payments/"+payment+"/refunds", `{"to":"ask_payer"}`), http.StatusCreated)
		if list := decode[apitypes.InboxList](t, do(s.handler, "GET", "/api/inbox", ""), http.StatusOK); len(list.Items) != 0 {
			t.Errorf("the inbox has %+v", list.Items)
		}
		_, err := s.service.NameRefundAddress(t.Context(), ledger.RefundClaim{Token: strings.TrimPrefix(asked.ClaimURL, "/refunds/"), To: invoice.Address{0xcc}, Account: invoice.AccountWithKey})
		must(t, err)
		list := decode[apitypes.InboxList](t, do(s.handler, "GET", "/api/inbox?kind=approval", ""), http.StatusOK)
		if len(list.Items) != 1 || list.Items[0].Refund == nil || list.Items[0].Refund.ID != asked.Refund.ID {
			t.Fatalf("the inbox has %+v", list.Items)
		}
		item := list.Items[0]
		body := fmt.Sprintf(`{"kind":"approval","objectId":%q,"version":%q,"decision":"dismissed","reason":"Not our customer"}`, item.Refund.ID, item.Version)

		made := decode[apitypes.DecisionResponse](t, do(s.handler, "POST", "/api/inbox/decisions", body), http.StatusCreated).Decision
		p := wantProblem(t, do(s.handler, "POST", "/api/inbox/decisions", body), http.StatusConflict, "already_decided", "")
		if !strings.Contains(p.Detail, " has dismissed this at 20") || !strings.Contains(p.Detail, "Not our customer") {
			t.Errorf("the refusal says %q", p.Detail)
		}
		counts := decode[apitypes.InboxCounts](t, do(s.handler, "GET", "/api/inbox/counts", ""), http.StatusOK)
		for _, c := range counts.Counts {
			if c.Count != 0 {
				t.Errorf("after the decision, %+v", c)
			}
		}
		for range 2 {
			undone := decode[apitypes.DecisionResponse](t, do(s.handler, "POST", "/api/inbox/decisions/"+made.ID+"/undo", ""), http.StatusOK).Decision
			if undone.UndoneBy == "" || undone.UndoneAt != now {
				t.Errorf("taken back: %+v", undone)
			}
		}
		if again := decode[apitypes.InboxList](t, do(s.handler, "GET", "/api/inbox", ""), http.StatusOK); len(again.Items) != 1 {
			t.Errorf("the inbox has %+v", again.Items)
		}
		stale := strings.Replace(body, item.Version, invoice.Address{0xdd}.String(), 1)
		wantProblem(t, do(s.handler, "POST", "/api/inbox/decisions", stale), http.StatusConflict, "item_changed", "")
		wantProblem(t, do(s.handler, "POST", "/api/inbox/decisions", strings.Replace(body, "dismissed", "accepted", 1)), http.StatusBadRequest, "invalid_field", "decision")
		all := decode[apitypes.DecisionList](t, do(s.handler, "GET", "/api/inbox/decisions?objectId="+item.Refund.ID, ""), http.StatusOK)
		if len(all.Decisions) != 1 || all.Decisions[0].ID != made.ID {
			t.Errorf("the decisions are %+v", all.Decisions)
		}
	})
}
