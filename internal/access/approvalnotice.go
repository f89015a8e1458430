package access

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// Limits of mails about requests for approval.
const (
	// ApprovalNoticePause is the time between two mails to a person, and until one that failed is tried again.
	ApprovalNoticePause = 10 * time.Minute
	// MaxNotified bounds the people who are mailed about a request.
	MaxNotified = 2 * MaxApprovers
)

// ApprovalNotice is a mail to a person about open requests for approval about which the person has not voted.
type ApprovalNotice struct {
	Person     Person
	MerchantID string
	Merchant   string   // its name, or its id
	Approvals  []string // ids of the requests, the oldest first
}

// TakeApprovalNotices returns the mails that are due to the next person, of which one may be sent: one for each
// merchant, of the oldest request first. No replica takes others to the person within ApprovalNoticePause, and they are
// due again then until EndApprovalNotice. The error is db.ErrNotFound without one.
func (m *SessionManager) TakeApprovalNotices(ctx context.Context) (due []ApprovalNotice, err error) {
	now := m.now()
	if due, err = dueNotices(ctx, m.cfg.Store, now); err != nil {
		return nil, err
	}
	return due, m.cfg.Store.Update(ctx, func(tx *db.Tx) error { return takeNotice(ctx, tx, due[0].Person.ID, now) })
}

// EndApprovalNotice records that a mail was sent, or can never be.
func (m *SessionManager) EndApprovalNotice(ctx context.Context, n ApprovalNotice) error {
	return m.cfg.Store.Update(ctx, func(tx *db.Tx) error { return deleteNotices(ctx, tx, n) })
}
