package access

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/db"
)

var requestTable = db.NewTable("api_requests", func(e *LoggedRequest) []db.Column {
	return []db.Column{
		db.Col("id", db.Text(&e.ID)),
		db.Col("merchant_id", db.Text(&e.MerchantID)),
		db.Col("key_id", db.Text(&e.KeyID)),
		db.Col("at", db.Milliseconds(&e.At)),
		db.Col("method", db.Text(&e.Method)),
		db.Col("route", db.Text(&e.Route)),
		db.Col("path", db.Text(&e.Path)),
		db.Col("status", db.Int(&e.Status)),
		db.Col("code", db.Text(&e.Code)),
		db.Col("detail", db.Text(&e.Detail)),
		db.Col("duration", db.Duration(&e.Duration, time.Millisecond)),
		db.Col("client", db.Text(&e.Client)),
		db.Col("request_id", db.Text(&e.RequestID)),
		db.Col("idempotent", db.OptionalBool(&e.Idempotent)),
	}
})

// InsertRequests stores requests.
func (s Tables) InsertRequests(ctx context.Context, entries []LoggedRequest) error {
	return s.DB.Update(ctx, func(tx *db.Tx) error { return requestTable.Insert(ctx, tx, "", entries...) })
}

// TrimRequests deletes up to limit requests of an owner of keys, but keeps the newest.
func (s Tables) TrimRequests(ctx context.Context, merchantID string, keep, limit int) error {
	return s.DB.Update(ctx, func(tx *db.Tx) error {
		return tx.Do(ctx, `DELETE FROM api_requests WHERE id IN
			(SELECT id FROM api_requests WHERE merchant_id = $1 ORDER BY id DESC LIMIT $2 OFFSET $3)`, merchantID, limit, keep)
	})
}

// CleanRequests deletes up to limit requests with lower ids, the oldest first, and returns their number.
func (s Tables) CleanRequests(ctx context.Context, below string, limit int) (n int64, err error) {
	err = s.DB.Update(ctx, func(tx *db.Tx) error {
		n, err = tx.Exec(ctx, "DELETE FROM api_requests WHERE id IN (SELECT id FROM api_requests WHERE id < $1 ORDER BY id LIMIT $2)", below, limit)
		return err
	})
	return n, err
}

// RequestFilter selects requests. Empty fields match all.
type RequestFilter struct {
	MerchantID string
	KeyID      string
	Status     RequestStatus
	Before     string // an id; lists requests that ended before this one
	Limit      int
}

// RequestStatus is a set of the statuses of requests.
type RequestStatus string

// Sets of statuses.
const (
	Succeeded    RequestStatus = "2xx"
	ClientErrors RequestStatus = "4xx"
	ServerErrors RequestStatus = "5xx"
	Failed       RequestStatus = "failed" // 4xx and 5xx
)

// RequestStatuses are all sets of statuses.
var RequestStatuses = []RequestStatus{Failed, Succeeded, ClientErrors, ServerErrors}

// condition returns the condition for the rows of a set. Its bounds equal the conditions of the partial indexes.
func (s RequestStatus) condition() string {
	switch s {
	case Succeeded:
		return "status < 300"
	case ClientErrors:
		return "status >= 400 AND status < 500"
	case ServerErrors:
		return "status >= 500"
	case Failed:
		return "status >= 400"
	}
	return ""
}

// Requests lists requests, those that ended last first.
func (q Reader) Requests(ctx context.Context, f RequestFilter) ([]LoggedRequest, error) {
	w := db.Where{}
	w.Equal("merchant_id", f.MerchantID)
	w.Equal("key_id", f.KeyID)
	w.Below("id", f.Before)
	if c := f.Status.condition(); c != "" {
		w.Conditions = append(w.Conditions, c)
	}
	entries, err := db.QueryAll(ctx, q, requestTable.Scan, requestTable.Select()+w.Text()+
		" ORDER BY id DESC LIMIT "+db.Parameter(w.Next()), append(w.Args, f.Limit)...)
	return entries, db.During("list requests", err)
}
