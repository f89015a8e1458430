package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/test/expect"
)

func (b *backend) MerchantStorage(ctx context.Context, merchantID string) (access.Storage, error) {
	return access.Storage{MerchantID: merchantID, AuditBytes: 7, AuditQuota: 1 << 30, Invoices: 3, InvoiceQuota: 5}, b.fail(ctx)
}

func (b *backend) Requests(ctx context.Context, f access.RequestFilter) ([]access.LoggedRequest, error) {
	return newest(b.logged, f.Limit, func(e access.LoggedRequest) bool {
		return (f.MerchantID == "" || f.MerchantID == e.MerchantID) && (f.KeyID == "" || f.KeyID == e.KeyID) &&
			(f.Status != access.Failed || e.Status >= 400) && (f.Before == "" || e.ID < f.Before)
	}), b.fail(ctx)
}

// TestListRequests lists requests by their filters and page by page.
func TestListRequests(t *testing.T) {
	b := new(backend)
	for i := range 6 {
		b.logged = append(b.logged, access.LoggedRequest{
			ID: "log_" + number(i), At: time.Unix(now+int64(i), 5e8), MerchantID: []string{"acme", "bean", ""}[i%3], KeyID: []string{"key_a", "key_b"}[i%2], Method: "POST",
			Route: "/api/invoices", Path: "/api/invoices", Status: []int{201, 400}[i%2], Duration: 1500 * time.Microsecond, Client: "192.0.2.1", RequestID: "req_1",
		})
	}
	given := false
	b.logged[5].Code, b.logged[5].Detail, b.logged[5].Idempotent = "invalid_field", "amount <b>.", &given
	h := newAPI(t, b)
	list := func(query string) (page apitypes.RequestList) {
		t.Helper()
		answer := do(h, "GET", "/api/requests"+query, "")
		if err := json.Unmarshal(answer.Body.Bytes(), &page); err != nil || answer.Code != 200 {
			t.Fatalf("%s: %d %s", query, answer.Code, answer.Body)
		}
		return page
	}
	for query, want := range map[string][]int{
		"": {5, 4, 3, 2, 1, 0}, "?merchantId=acme": {3, 0}, "?keyId=key_b": {5, 3, 1}, "?status=failed&merchantId=bean": {1}, "?merchantId=a%20b": {}, "?keyId=nobody": {},
	} {
		got := []int{}
		for _, r := range list(query).Requests {
			got = append(got, int(r.At-now))
		}
		expect.NoDiff(t, cmp.Diff(want, got), "%s", query)
	}
	first := list("?limit=2")
	want := apitypes.LoggedRequest{
		ID: b.logged[5].ID, At: now + 5, KeyID: "key_b", Method: "POST", Route: "/api/invoices", Path: "/api/invoices", Status: 400, Code: "invalid_field",
		Detail: "amount <b>.", DurationMs: 1, Client: "192.0.2.1", RequestID: "req_1", IdempotencyKey: &given,
	}
	if diff := cmp.Diff(want, first.Requests[0]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if next := list("?limit=2&cursor=" + first.NextCursor); len(next.Requests) != 2 || next.Requests[0].ID != b.logged[3].ID {
		t.Errorf("the second page is %+v", next)
	}
	for query, field := range map[string]string{"keyId=": "keyId", "keyId=%00": "keyId", "limit=0": "limit", "cursor=x": "cursor"} {
		wantProblem(t, do(h, "GET", "/api/requests?"+query, ""), 400, "invalid_field", field)
	}
	wantProblem(t, do(h, "GET", fmt.Sprintf("/api/requests?status=%d", 400), ""), 400, "invalid_status", "")
}
