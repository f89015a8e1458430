package api_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestApprovals lists requests for approval by merchant and state, and reads one.
func TestApprovals(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		k := newKeyed(t, store)
		at := testClock().UTC()
		var made []access.Approval
		for n, merchant := range []string{"acme", "bean", "acme", "acme", "acme"} {
			a := access.Approval{
				ID: fmt.Sprintf("apr_%026d", n), MerchantID: merchant, Kind: access.OfPolicy, Subject: `{"people":0}`, Hash: fmt.Sprintf("%064d", n), State: access.ApprovalRequested,
				People: 2, RequestedBy: "maria", RequestedAt: at, ExpiresAt: at.Add(access.ApprovalLifetime),
			}
			switch n {
			case 2:
				a.State, a.UsedAt = access.ApprovalApproved, at
			case 3:
				a.RequestedAt, a.ExpiresAt = at.Add(-access.ApprovalLifetime), at
			}
			made = append(made, a)
		}
		err := store.Update(t.Context(), func(tx *db.Tx) error {
			for _, a := range made {
				if err := access.InsertApproval(t.Context(), tx, a); err != nil {
					return err
				}
			}
			return nil
		})
		expect.OK(t, err)
		c := k.client("")
		for want, f := range map[string]client.ApprovalFilter{
			"4 3 2 1 0": {PageSize: 2}, "4 3 2 0": {MerchantID: "acme", PageSize: 1}, "4 0": {MerchantID: "acme", State: apitypes.ApprovalRequested},
			"2": {State: apitypes.ApprovalUsed}, "3": {State: apitypes.ApprovalExpired}, "": {State: apitypes.ApprovalApproved},
		} {
			var got []string
			for a, err := range c.Approvals(t.Context(), f) {
				expect.OK(t, err)
				got = append(got, a.ID[len(a.ID)-1:])
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%+v lists %v, want %s", f, got, want)
			}
		}
		for _, err := range c.Approvals(t.Context(), client.ApprovalFilter{State: "open"}) {
			if refused := (*client.Error)(nil); !errors.As(err, &refused) || refused.Field != "state" {
				t.Errorf("an unknown state: %v", err)
			}
		}
		if got, err := c.Approval(t.Context(), made[2].ID); err != nil || got.Approval.State != apitypes.ApprovalUsed || got.Approval.People != 2 || got.Approval.Subject != made[2].Subject {
			t.Errorf("read %+v, %v", got, err)
		}
		if _, err := c.Approval(t.Context(), "apr_0"); err == nil {
			t.Error("an unknown id was found")
		}
	})
}
