package access

import (
	"context"
	"fmt"
	"strings"

	"github.com/quittance/quittance/internal/db"
)

const requestColumns = "id, merchant_id, key_id, at, method, route, path, status, code, detail, duration, client, request_id, idempotent"

func scanRequest(row db.Scanner) (e LoggedRequest, err error) {
	err = row.Scan(&e.ID, &e.MerchantID, &e.KeyID, db.Milliseconds(&e.At), &e.Method, &e.Route, &e.Path, &e.Status, &e.Code, &e.Detail,
		db.Duration(&e.Duration), &e.Client, &e.RequestID, &e.Idempotent)
	return e, err
}

// InsertRequests stores requests.
func (s Tables) InsertRequests(ctx context.Context, entries []LoggedRequest) error {
	rows := make([][]any, len(entries))
	for i, e := range entries {
		rows[i] = []any{
			e.ID, e.MerchantID, e.KeyID, e.At.UnixMilli(), e.Method, e.Route, e.Path, e.Status, e.Code, e.Detail,
			e.Duration.Milliseconds(), e.Client, e.RequestID, flag(e.Idempotent),
		}
	}
	return s.DB.Update(ctx, func(tx *db.Tx) error {
		return tx.Insert(ctx, db.Insertion{Table: "api_requests", Columns: strings.Split(requestColumns, ", ")}, rows)
	})
}

// flag returns the value of a column that is 0, 1 or NULL.
func flag(set *bool) any {
	switch {
	case set == nil:
		return nil
	case *set:
		return 1
	}
	return 0
}

// TrimRequests deletes up to limit requests of an owner of keys, but keeps the newest.
func (s Tables) TrimRequests(ctx context.Context, merchantID string, keep, limit int) error {
	return s.DB.Update(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM api_requests WHERE id IN
			(SELECT id FROM api_requests WHERE merchant_id = $1 ORDER BY id DESC LIMIT $2 OFFSET $3)`, merchantID, limit, keep)
		return err
	})
}

// CleanRequests deletes up to limit requests with lower ids, the oldest first, and returns
// their number.
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

// condition returns the condition for the rows of a set. Its bounds equal the conditions of the
// partial indexes.
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
	entries, err := db.QueryAll(ctx, q, scanRequest, "SELECT "+requestColumns+" FROM api_requests"+w.Text()+
		" ORDER BY id DESC LIMIT "+db.Parameter(w.Next()), append(w.Args, f.Limit)...)
	if err != nil {
		return nil, fmt.Errorf("list requests: %w", err)
	}
	return entries, nil
}
