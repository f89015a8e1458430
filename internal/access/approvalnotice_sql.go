package access

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// noticeDue returns the merchant with new requests for approval whose people were mailed longest ago, if that is
// ApprovalNoticePause ago.
func noticeDue(ctx context.Context, q db.Querier, now time.Time) ([]string, error) {
	return db.QueryAll(ctx, q, db.ScanID, `SELECT merchant_id FROM approval_policies p WHERE people > 0 AND mailed_at <= $1 AND EXISTS
		(SELECT 1 FROM approvals a WHERE a.merchant_id = p.merchant_id AND `+isOpen+` AND expires_at > $2 AND mailed = 0) ORDER BY mailed_at, merchant_id LIMIT 1`,
		now.Add(-ApprovalNoticePause).Unix(), now.Unix())
}

// takeNotice stores that people are mailed about all open requests of a merchant. It reports false if another replica has
// just done so.
func takeNotice(ctx context.Context, tx *db.Tx, merchantID string, now time.Time) (bool, error) {
	n, err := tx.Exec(ctx, "UPDATE approval_policies SET mailed_at = $2 WHERE merchant_id = $1 AND mailed_at <= $3", merchantID, now.Unix(), now.Add(-ApprovalNoticePause).Unix())
	if err != nil || n == 0 {
		return false, err
	}
	_, err = tx.Exec(ctx, "UPDATE approvals SET mailed = 1 WHERE merchant_id = $1 AND mailed = 0 AND "+isOpen, merchantID)
	return true, err
}

// approvalNotices returns the notices about the requests of a merchant that are not approved yet.
func approvalNotices(ctx context.Context, tx *db.Tx, merchantID string, now time.Time) ([]ApprovalNotice, error) {
	return db.QueryAll(ctx, tx, func(row db.Scanner) (n ApprovalNotice, err error) {
		n.MerchantID = merchantID
		err = row.Scan(&n.Person.ID, &n.Person.Email, &n.Person.Name, &n.Person.Language, &n.Merchant, &n.ApprovalID, &n.Requests)
		return n, err
	}, `SELECT person.id, person.email, person.name, person.language, coalesce((SELECT p.name FROM merchant_profiles p WHERE p.merchant_id = $2), $2),
			min(approvals.id), count(*)
		FROM (SELECT person_id FROM api_keys WHERE merchant_id = $2 AND `+mayApproveAt("$1")+` ORDER BY id LIMIT $3) AS member
		JOIN people person ON person.id = member.person_id JOIN approvals ON approvals.merchant_id = $2
		WHERE `+stateAt+` = 'requested' AND NOT EXISTS (SELECT 1 FROM approval_votes v WHERE v.approval_id = approvals.id AND v.person_id = person.id)
		GROUP BY person.id, person.email, person.name, person.language ORDER BY person.id`, now.Unix(), merchantID, MaxNotified)
}
