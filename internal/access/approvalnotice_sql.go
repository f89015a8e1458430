package access

import (
	"context"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// noticeDue is a condition on a person who was not mailed since the time $2. A stamp after $3 is of a clock that was set back.
const noticeDue = "(noticed_at <= $2 OR noticed_at > $3)"

// mostNotices bounds the requests that are looked at for a mail.
const mostNotices = 10 * MaxApprovals

// noticeBounds are the values of noticeDue at a time.
func noticeBounds(now time.Time) (since, until int64) {
	return now.Add(-ApprovalNoticePause).Unix(), now.Add(ApprovalNoticePause).Unix()
}

// insertNotices has people who may approve a request be mailed about it.
func insertNotices(ctx context.Context, tx *db.Tx, a Approval) error {
	return tx.Do(ctx, "INSERT INTO approval_notices (approval_id, person_id) SELECT $3, person_id FROM api_keys WHERE merchant_id = $2 AND "+mayApproveAt("$1")+
		" ORDER BY id LIMIT $4 ON CONFLICT DO NOTHING", a.RequestedAt.Unix(), a.MerchantID, a.ID, MaxNotified)
}

// dueNotices returns the mails to the person who was mailed longest ago, each about all requests of a merchant that
// lack the person's vote, or ErrNotFound.
func dueNotices(ctx context.Context, q db.Querier, now time.Time) (due []ApprovalNotice, err error) {
	since, until := noticeBounds(now)
	found, err := db.QueryAll(ctx, q, func(row db.Scanner) (n ApprovalNotice, err error) {
		n.Approvals = make([]string, 1)
		err = row.Scan(&n.Person.ID, &n.Person.Email, &n.Person.Name, &n.Person.Language, &n.MerchantID, &n.Merchant, &n.Approvals[0])
		return n, err
	}, `SELECT person.id, person.email, person.name, person.language, approvals.merchant_id,
			coalesce((SELECT p.name FROM merchant_profiles p WHERE p.merchant_id = approvals.merchant_id), approvals.merchant_id), approvals.id
		FROM approval_notices n JOIN approvals ON approvals.id = n.approval_id JOIN people person ON person.id = n.person_id
		WHERE `+noticeDue+" AND "+stateAt+` = 'requested'
			AND EXISTS (SELECT 1 FROM api_keys k WHERE k.person_id = person.id AND k.merchant_id = approvals.merchant_id AND `+mayApproveAt("$1")+`)
			AND NOT EXISTS (SELECT 1 FROM approval_votes v WHERE v.approval_id = approvals.id AND v.person_id = person.id)
		ORDER BY noticed_at, person.id, approvals.id LIMIT $4`, now.Unix(), since, until, mostNotices)
	for _, n := range found {
		i := slices.IndexFunc(due, func(of ApprovalNotice) bool { return of.MerchantID == n.MerchantID })
		switch {
		case n.Person.ID != found[0].Person.ID:
		case i < 0:
			due = append(due, n)
		default:
			due[i].Approvals = append(due[i].Approvals, n.Approvals...)
		}
	}
	if err == nil && len(due) == 0 {
		err = db.ErrNotFound
	}
	return due, err
}

// takeNotice stores that a person is being mailed. It returns ErrNotFound if another replica has just done so.
func takeNotice(ctx context.Context, tx *db.Tx, personID string, now time.Time) error {
	since, until := noticeBounds(now)
	return tx.Change(ctx, "UPDATE people SET noticed_at = $4 WHERE id = $1 AND "+noticeDue, personID, since, until, now.Unix())
}

// deleteNotices forgets a mail.
func deleteNotices(ctx context.Context, tx *db.Tx, n ApprovalNotice) error {
	for _, id := range n.Approvals {
		if _, err := tx.Exec(ctx, "DELETE FROM approval_notices WHERE approval_id = $1 AND person_id = $2", id, n.Person.ID); err != nil {
			return err
		}
	}
	return nil
}

// endNotices forgets the mails about a request that has ended.
func endNotices(ctx context.Context, tx *db.Tx, approvalID string) error {
	return tx.Do(ctx, "DELETE FROM approval_notices WHERE approval_id = $1", approvalID)
}
