package access_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// memory is a store of requests.
type memory struct {
	entries []access.LoggedRequest
	batches int
	err     error
	cleaned int64         // rows that CleanRequests can still delete
	takes   time.Duration // how long an insert takes
}

func (m *memory) InsertRequests(ctx context.Context, entries []access.LoggedRequest) error {
	if m.takes > 0 && !clock.Sleep(ctx, m.takes, nil) {
		return ctx.Err()
	}
	if m.err != nil {
		return m.err
	}
	m.batches++
	m.entries = append(m.entries, entries...)
	return nil
}

func (m *memory) TrimRequests(_ context.Context, merchantID string, keep, limit int) error {
	var kept []access.LoggedRequest
	of := m.count(merchantID)
	for _, e := range m.entries {
		if e.MerchantID == merchantID && of > keep && limit > 0 {
			of, limit = of-1, limit-1
			continue
		}
		kept = append(kept, e)
	}
	m.entries = kept
	return m.err
}

func (m *memory) CleanRequests(_ context.Context, _ string, limit int) (int64, error) {
	n := min(m.cleaned, int64(limit))
	m.cleaned -= n
	return n, m.err
}

func (m *memory) count(merchantID string) (n int) {
	for _, e := range m.entries {
		if e.MerchantID == merchantID {
			n++
		}
	}
	return n
}

func newLog(m *memory, dropped *int) *access.Log {
	return access.NewRequestLog(access.RequestLogConfig{
		Store: m, IDs: invoice.NewIDs(time.Now, rand.Reader), Now: time.Now, Dropped: func(n int) { *dropped += n }, Logger: slog.New(slog.DiscardHandler),
	})
}

// run runs a log. stop ends it, and waits until it has ended.
func run(t *testing.T, l *access.Log) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); l.Run(ctx) }()
	return func() { cancel(); <-ended }
}

// TestBounds adds requests of several owners between flushes. Every lost request is counted. A batch
// and the entries per owner are bounded, and the newest are kept.
func TestBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m, dropped, added := new(memory), 0, 0
		l := newLog(m, &dropped)
		newest := make(map[string]string)
		for range rapid.IntRange(1, 40).Draw(t, "flushes") {
			for owner := range rapid.IntRange(0, 8).Draw(t, "owners") {
				name := fmt.Sprint("m", owner)
				for range rapid.IntRange(1, 2*access.MaxPending).Draw(t, "requests") {
					added++
					newest[name] = fmt.Sprint("req_", added)
					l.Add(access.LoggedRequest{MerchantID: name, RequestID: newest[name]})
				}
			}
			before := len(m.entries)
			l.Flush(t.Context())
			if n := len(m.entries) - before; n > access.MaxBatch {
				t.Fatalf("a batch has %d requests", n)
			}
		}
		for range 3 { // the number of pending ones fits
			l.Flush(t.Context())
		}
		last := make(map[string]string)
		for _, e := range m.entries {
			last[e.MerchantID] = e.RequestID
		}
		for owner, want := range newest {
			if n := m.count(owner); n > access.MaxKept+access.MaxUncounted {
				t.Fatalf("%d requests of %s are kept", n, owner)
			}
			if last[owner] != want {
				t.Fatalf("the last request of %s is %s, want %s", owner, last[owner], want)
			}
		}
		if len(newest) > 0 && dropped > added {
			t.Fatalf("%d of %d were dropped", dropped, added)
		}
	})
}

// TestTexts adds texts that no database takes, that are too long, and that hold a key.
func TestTexts(t *testing.T) {
	t.Parallel()
	m, dropped := new(memory), 0
	l := newLog(m, &dropped)
	l.Add(access.LoggedRequest{Path: "/api/" + strings.Repeat("é", 300), Detail: "a\x00b\xffc qk_live_0123456789abcdef"})
	l.Flush(t.Context())
	e := m.entries[0]
	if want := "/api/" + strings.Repeat("é", 194) + "…"; e.Path != want || e.Detail != "a�b�c qk_REDACTED" || !strings.HasPrefix(e.ID, access.Prefix) {
		t.Errorf("kept %+v", e)
	}
}

// TestDatabaseFails drops and counts requests that the database does not take.
func TestDatabaseFails(t *testing.T) {
	t.Parallel()
	m, dropped := &memory{err: errors.New("down")}, 0
	l := newLog(m, &dropped)
	l.Add(access.LoggedRequest{MerchantID: "acme"})
	l.Flush(t.Context())
	if m.err = nil; dropped != 1 {
		t.Errorf("%d were dropped", dropped)
	}
	l.Flush(t.Context())
	for i := range access.MaxOwners + 3 {
		l.Add(access.LoggedRequest{MerchantID: fmt.Sprint(i)})
	}
	if dropped != 4 {
		t.Errorf("with too many owners %d were dropped", dropped)
	}
}

// TestWaitingIsBounded fills the queue of each owner while no batch is written, and later adds requests of others.
func TestWaitingIsBounded(t *testing.T) {
	t.Parallel()
	m, dropped := new(memory), 0
	l := newLog(m, &dropped)
	for i := range access.MaxOwners * access.MaxPending {
		l.Add(access.LoggedRequest{MerchantID: fmt.Sprint(i / access.MaxPending)})
	}
	if want := access.MaxOwners*access.MaxPending - access.MaxWaiting; dropped != want {
		t.Errorf("%d were dropped; want %d", dropped, want)
	}
	l.Add(access.LoggedRequest{MerchantID: "0", Status: 400}) // replaces an older one
	for range access.MaxWaiting/access.MaxBatch + 1 {
		l.Flush(t.Context())
	}
	refused := 0
	for _, e := range m.entries {
		refused += e.Status / 400
	}
	if len(m.entries) != access.MaxWaiting || refused != 1 {
		t.Errorf("%d were written, %d of them refused; want %d and 1", len(m.entries), refused, access.MaxWaiting)
	}
	dropped = 0
	if l.Add(access.LoggedRequest{MerchantID: "late"}); dropped != 0 {
		t.Error("one was dropped when no other waited")
	}
}

// TestFailuresStay adds one refused request and then more others than may wait.
func TestFailuresStay(t *testing.T) {
	t.Parallel()
	m, dropped := new(memory), 0
	l := newLog(m, &dropped)
	l.Add(access.LoggedRequest{Status: 400})
	for range 2 * access.MaxPending {
		l.Add(access.LoggedRequest{Status: 200})
	}
	l.Flush(t.Context())
	if len(m.entries) != access.MaxPending || m.entries[0].Status != 400 || dropped != access.MaxPending+1 {
		t.Errorf("%d requests were written, the first is %d; %d were dropped", len(m.entries), m.entries[0].Status, dropped)
	}
}

// TestRun writes at an interval, and the rest at the end.
func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, dropped := new(memory), 0
		l := newLog(m, &dropped)
		stop := run(t, l)
		l.Add(access.LoggedRequest{})
		time.Sleep(access.Interval + time.Millisecond) //nolint:forbidigo // of virtual time
		synctest.Wait()
		if len(m.entries) != 1 {
			t.Errorf("%d requests were written", len(m.entries))
		}
		const more = access.MaxBatch + access.MaxPending
		for n := range more {
			l.Add(access.LoggedRequest{MerchantID: fmt.Sprint("mer_", n%10)})
		}
		stop()
		if len(m.entries) != 1+more || m.batches != 3 {
			t.Errorf("%d requests were written at the end, in %d batches", len(m.entries), m.batches)
		}
		m.cleaned = 1200
		if err := l.Clean(t.Context(), time.Now()); err != nil || m.cleaned != 0 {
			t.Errorf("%d old requests are left, %v", m.cleaned, err)
		}
	})
}

// TestStopDuringWrite ends the log while a batch is written.
func TestStopDuringWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, dropped := new(memory), 0
		m.takes = time.Second
		l := newLog(m, &dropped)
		stop := run(t, l)
		l.Add(access.LoggedRequest{})
		time.Sleep(access.Interval + time.Millisecond) //nolint:forbidigo // of virtual time
		stop()
		if len(m.entries) != 1 || dropped != 0 {
			t.Errorf("%d requests were written and %d dropped", len(m.entries), dropped)
		}
	})
}

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
