package access_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// loggedRequest returns the n-th request of a merchant's key.
func loggedRequest(n int, merchantID, keyID string, status int) access.LoggedRequest {
	return access.LoggedRequest{
		ID: fmt.Sprintf("log_%03d", n), MerchantID: merchantID, KeyID: keyID, At: time.UnixMilli(int64(1000 * n)).UTC(), Method: "POST", Route: "/api/invoices",
		Path: "/api/invoices", Status: status, Duration: 12 * time.Millisecond, Client: "192.0.2.1", RequestID: "req_1",
	}
}

// TestRequests stores requests, lists them by their filters, and deletes old ones.
func TestRequests(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		ctx := t.Context()
		yes, no := true, false
		all := []access.LoggedRequest{
			loggedRequest(1, "acme", "key_a", 201), loggedRequest(2, "acme", "key_b", 400), loggedRequest(3, "globex", "key_g", 503), loggedRequest(4, "", "", 304), loggedRequest(5, "acme", "key_a", 500),
		}
		all[0].Idempotent, all[2].Idempotent = &yes, &no
		all[1].Code, all[1].Detail = "invalid_field", "amount must be $1 or “two” ?1."
		rowtest.Must(t, access.NewTables(s).InsertRequests(ctx, all))
		list := func(f access.RequestFilter) []access.LoggedRequest {
			t.Helper()
			f.Limit = 9
			got, err := access.NewReader(s).Requests(ctx, f)
			rowtest.Must(t, err)
			return got
		}
		for _, c := range []struct {
			filter access.RequestFilter
			want   []access.LoggedRequest
		}{
			{access.RequestFilter{}, []access.LoggedRequest{all[4], all[3], all[2], all[1], all[0]}},
			{access.RequestFilter{Before: "log_003"}, []access.LoggedRequest{all[1], all[0]}},
			{access.RequestFilter{MerchantID: "acme"}, []access.LoggedRequest{all[4], all[1], all[0]}},
			{access.RequestFilter{MerchantID: "acme", KeyID: "key_g"}, nil},
			{access.RequestFilter{KeyID: "key_a", Status: access.Failed}, []access.LoggedRequest{all[4]}},
			{access.RequestFilter{Status: access.Failed}, []access.LoggedRequest{all[4], all[2], all[1]}},
			{access.RequestFilter{Status: access.ClientErrors}, []access.LoggedRequest{all[1]}},
			{access.RequestFilter{Status: access.ServerErrors}, []access.LoggedRequest{all[4], all[2]}},
			{access.RequestFilter{Status: access.Succeeded}, []access.LoggedRequest{all[0]}},
		} {
			expect.NoDiff(t, cmp.Diff(c.want, list(c.filter)), "%+v", c.filter)
		}
		rowtest.Must(t, access.NewTables(s).TrimRequests(ctx, "acme", 1, 1))
		expect.NoDiff(t, cmp.Diff([]access.LoggedRequest{all[4], all[3], all[2], all[0]}, list(access.RequestFilter{})), "after one of acme was deleted")
		rowtest.Must(t, access.NewTables(s).TrimRequests(ctx, "acme", 1, 500))
		if n, err := access.NewTables(s).CleanRequests(ctx, "log_005", 1); n != 1 || err != nil {
			t.Errorf("%d were deleted, %v", n, err)
		}
		expect.NoDiff(t, cmp.Diff([]access.LoggedRequest{all[4], all[3]}, list(access.RequestFilter{})), "at the end")
	})
}
