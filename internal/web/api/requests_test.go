package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
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

func (b *backend) AuditEntries(ctx context.Context, f access.AuditFilter) ([]access.Entry, error) {
	return newest(b.audit, f.Limit, func(e access.Entry) bool {
		return (f.MerchantID == "" || f.MerchantID == e.MerchantID) && (f.Action == "" || f.Action == e.Action) &&
			!e.At.Before(f.Since) && (f.Before == 0 || e.Seq < f.Before)
	}), b.fail(ctx)
}

// newAuditBackend returns a backend with n entries of two merchants and the operator.
func newAuditBackend(n int) *backend {
	b := new(backend)
	var head access.Head
	for i := range n {
		e := access.Entry{
			At: time.Unix(now+int64(i), 0), Origin: access.Origin{Actor: "key_1", Client: "192.0.2.1", RequestID: "req_1"},
			MerchantID: []string{"acme", "bean", ""}[i%3], Action: []access.Action{access.ActionEndpointUpdate, access.ActionKeyCreate}[i%2],
			Object: fmt.Sprint("object", i), After: `{"text":"\u003cb\u003e"}`,
		}.Following(head)
		head = access.Head{Seq: e.Seq, Hash: e.Hash}
		b.audit = append(b.audit, e)
	}
	return b
}

func TestListAudit(t *testing.T) {
	b := newAuditBackend(7)
	h := newAPI(t, b)
	for query, want := range map[string][]int64{
		"":                           {7, 6, 5, 4, 3, 2, 1},
		"?merchantId=acme":           {7, 4, 1},
		"?merchantId=nobody":         {},
		"?merchantId=a%20b":          {},
		"?action=key.create":         {6, 4, 2},
		"?action=%C3%A9":             {},
		fmt.Sprint("?since=", now+4): {7, 6, 5},
		fmt.Sprint("?since=", now+1, "&merchantId=bean&action=key.create"): {2},
	} {
		var got []int64
		for cursor := ""; ; {
			separator := "?"
			if query != "" {
				separator = "&"
			}
			answer := do(h, "GET", "/api/audit"+query+separator+"limit=2&cursor="+url.QueryEscape(cursor), "")
			if cursor == "" {
				answer = do(h, "GET", "/api/audit"+query+separator+"limit=2", "")
			}
			var page apitypes.AuditList
			if err := json.Unmarshal(answer.Body.Bytes(), &page); err != nil || answer.Code != 200 {
				t.Fatalf("%s: %d %s", query, answer.Code, answer.Body)
			}
			for _, e := range page.Entries {
				got = append(got, e.Seq)
			}
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
		expect.NoDiff(t, cmp.Diff(want, append([]int64{}, got...)), "%s", query)
	}
	var page apitypes.AuditList
	expect.OK(t, json.Unmarshal(do(h, "GET", "/api/audit?limit=1", "").Body.Bytes(), &page))
	e := b.audit[6]
	want := apitypes.AuditEntry{
		Seq: 7, At: now + 6, Actor: "key_1", Client: "192.0.2.1", RequestID: "req_1", MerchantID: "acme", Action: "endpoint.update",
		Object: "object6", After: e.After, PrevHash: b.audit[5].Hash.String(), Hash: e.Hash.String(),
	}
	if diff := cmp.Diff(want, page.Entries[0]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for query, field := range map[string]string{
		"since=-1": "since", "since=01": "since", "since=x": "since", "since=1&since=2": "since", "since=9223372036854775808": "since",
		"action=a&action=b": "action", "limit=0": "limit", "cursor=x": "cursor",
	} {
		wantProblem(t, do(h, "GET", "/api/audit?"+query, ""), 400, "invalid_field", field)
	}
}
