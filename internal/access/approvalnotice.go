package access

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// Limits of mails about requests for approval.
const (
	// ApprovalNoticePause is the time between two notices of a merchant. Each covers all open requests.
	ApprovalNoticePause = 10 * time.Minute
	// MaxNotified bounds the people whom a notice reaches.
	MaxNotified = 2 * MaxApprovers
)

// ApprovalNotice is a mail to a person about open requests for approval about which the person has not voted.
type ApprovalNotice struct {
	Person     Person
	MerchantID string
	Merchant   string // its name, or its id
	ApprovalID string // the oldest request
	Requests   int    // how many there are
}

// TakeApprovalNotices returns the notices of one merchant that has new requests for approval, once: the caller mails them.
// It returns none if no merchant has new ones, or people were mailed less than ApprovalNoticePause ago.
func (m *SessionManager) TakeApprovalNotices(ctx context.Context) (notices []ApprovalNotice, err error) {
	now := m.now()
	due, err := noticeDue(ctx, m.cfg.Store, now)
	if err != nil || len(due) == 0 {
		return nil, err
	}
	err = m.cfg.Store.Update(ctx, func(tx *db.Tx) error {
		notices = nil
		taken, err := takeNotice(ctx, tx, due[0], now)
		if err == nil && taken {
			notices, err = approvalNotices(ctx, tx, due[0], now)
		}
		return err
	})
	return notices, err
}
