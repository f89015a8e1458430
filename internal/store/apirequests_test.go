package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/requestlog"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// recordRequests reads, trims and cleans the log of requests.
func recordRequests(t *testing.T, read *store.Store, what *string) {
	t.Helper()
	for i := range 4 {
		f := store.RequestFilter{Before: "log_9", Limit: 50}
		if i&1 == 1 {
			f.MerchantID = "m"
		}
		if i&2 == 2 {
			f.KeyID = "key_1"
		}
		for _, f.Status = range append(store.RequestStatuses, "") {
			*what = fmt.Sprintf("requests: %+v", f)
			_, err := read.Requests(t.Context(), f)
			must(t, err)
		}
	}
	*what = "requests: trim"
	must(t, read.TrimRequests(t.Context(), "m", 1000, 500))
	*what = "requests: clean"
	_, err := read.CleanRequests(t.Context(), "log_1", 500)
	must(t, err)
}

// loggedRequest returns the n-th request of a merchant's key.
func loggedRequest(n int, merchantID, keyID string, status int) requestlog.Entry {
	return requestlog.Entry{
		ID: fmt.Sprintf("log_%03d", n), MerchantID: merchantID, KeyID: keyID, At: time.UnixMilli(int64(1000 * n)).UTC(), Method: "POST", Route: "/api/invoices",
		Path: "/api/invoices", Status: status, Duration: 12 * time.Millisecond, Client: "192.0.2.1", RequestID: "req_1",
	}
}

// TestRequests stores requests, lists them by their filters, and deletes old ones.
func TestRequests(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		ctx := t.Context()
		yes, no := true, false
		all := []requestlog.Entry{
			loggedRequest(1, "acme", "key_a", 201), loggedRequest(2, "acme", "key_b", 400), loggedRequest(3, "globex", "key_g", 503), loggedRequest(4, "", "", 304), loggedRequest(5, "acme", "key_a", 500),
		}
		all[0].Idempotent, all[2].Idempotent = &yes, &no
		all[1].Code, all[1].Detail = "invalid_field", "amount must be $1 or “two” ?1."
		must(t, s.InsertRequests(ctx, all))
		list := func(f store.RequestFilter) []requestlog.Entry {
			t.Helper()
			f.Limit = 9
			got, err := s.Requests(ctx, f)
			must(t, err)
			return got
		}
		for _, c := range []struct {
			filter store.RequestFilter
			want   []requestlog.Entry
		}{
			{store.RequestFilter{}, []requestlog.Entry{all[4], all[3], all[2], all[1], all[0]}},
			{store.RequestFilter{Before: "log_003"}, []requestlog.Entry{all[1], all[0]}},
			{store.RequestFilter{MerchantID: "acme"}, []requestlog.Entry{all[4], all[1], all[0]}},
			{store.RequestFilter{MerchantID: "acme", KeyID: "key_g"}, nil},
			{store.RequestFilter{KeyID: "key_a", Status: store.Failed}, []requestlog.Entry{all[4]}},
			{store.RequestFilter{Status: store.Failed}, []requestlog.Entry{all[4], all[2], all[1]}},
			{store.RequestFilter{Status: store.ClientErrors}, []requestlog.Entry{all[1]}},
			{store.RequestFilter{Status: store.ServerErrors}, []requestlog.Entry{all[4], all[2]}},
			{store.RequestFilter{Status: store.Succeeded}, []requestlog.Entry{all[0]}},
		} {
			if diff := cmp.Diff(c.want, list(c.filter)); diff != "" {
				t.Errorf("%+v (-want +got):\n%s", c.filter, diff)
			}
		}
		must(t, s.TrimRequests(ctx, "acme", 1, 1))
		if diff := cmp.Diff([]requestlog.Entry{all[4], all[3], all[2], all[0]}, list(store.RequestFilter{})); diff != "" {
			t.Errorf("after one of acme was deleted (-want +got):\n%s", diff)
		}
		must(t, s.TrimRequests(ctx, "acme", 1, 500))
		if n, err := s.CleanRequests(ctx, "log_005", 1); n != 1 || err != nil {
			t.Errorf("%d were deleted, %v", n, err)
		}
		if diff := cmp.Diff([]requestlog.Entry{all[4], all[3]}, list(store.RequestFilter{})); diff != "" {
			t.Errorf("at the end (-want +got):\n%s", diff)
		}
	})
}
