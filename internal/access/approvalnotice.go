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

// TakeApprovalNotice returns the next mail that is due. No replica takes another one to the person within
// ApprovalNoticePause, and the same is due again then until EndApprovalNotice. The error is db.ErrNotFound without one.
func (m *SessionManager) TakeApprovalNotice(ctx context.Context) (n ApprovalNotice, err error) {
	now := m.now()
	if n, err = dueNotice(ctx, m.cfg.Store, now); err != nil {
		return n, err
	}
	return n, m.cfg.Store.Update(ctx, func(tx *db.Tx) error { return takeNotice(ctx, tx, n.Person.ID, now) })
}

// EndApprovalNotice records that a mail was sent, or can never be.
func (m *SessionManager) EndApprovalNotice(ctx context.Context, n ApprovalNotice) error {
	return m.cfg.Store.Update(ctx, func(tx *db.Tx) error { return deleteNotices(ctx, tx, n) })
}
