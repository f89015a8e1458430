package access

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// isOpen is a condition on a request that has not ended, except by its expiry.
const isOpen = "state = 'requested' AND used_at IS NULL"

// needed is how many people must approve a request: as many as the policy wanted, or more if it wants more now.
const needed = "coalesce((SELECT p.people FROM approval_policies p WHERE p.merchant_id = approvals.merchant_id AND p.people > approvals.people), approvals.people)"

var (
	// stateAt is the state of a request at the time $1. It is approved while enough people approve it who may.
	stateAt = "CASE WHEN used_at IS NOT NULL THEN 'used' WHEN state <> 'refused' AND expires_at <= $1 THEN 'expired' WHEN state = 'requested' AND " +
		"(SELECT count(*) FROM api_keys k WHERE k.merchant_id = approvals.merchant_id AND " + mayApproveAt("$1") + " AND " + approves("approvals.id") + ") >= " + needed +
		" THEN 'approved' ELSE state END"
	// mayApprove is MayApprove as a condition on a key.
	mayApprove = "' ' || scopes || ' ' LIKE '% " + strings.Join(Finance.Names(), " %' AND ' ' || scopes || ' ' LIKE '% ") + " %'"
)

// mayApproveAt is a condition on a membership of a person who may approve at the time in a parameter.
func mayApproveAt(parameter string) string {
	return "person_id IS NOT NULL AND " + activeAt(parameter) + " AND " + mayApprove
}

// approves is a condition on a membership of a person who has approved a request.
func approves(id string) string {
	return "person_id IN (SELECT v.person_id FROM approval_votes v WHERE v.approval_id = " + id + " AND v.approves = 1)"
}

var approvalTable = db.NewTable("approvals", func(a *Approval) []db.Column {
	return []db.Column{
		db.Col("id", db.Text(&a.ID)),
		db.Col("merchant_id", db.Text(&a.MerchantID)),
		db.Col("kind", db.Text(&a.Kind)),
		db.Col("subject", db.Text(&a.Subject)),
		db.Col("subject_hash", db.Text(&a.Hash)),
		db.Col("people", db.Int(&a.People)),
		db.Col("requested_by", db.Text(&a.RequestedBy)),
		db.Col("requester", db.Text(&a.Requester)),
		db.Col("requested_at", db.Seconds(&a.RequestedAt)),
		db.Col("expires_at", db.Seconds(&a.ExpiresAt)),
		db.Col("used_at", db.Null(db.Seconds(&a.UsedAt))),
		db.Expr(stateAt, db.Text(&a.State)),
		db.Expr(needed, db.Int(&a.Needed)),
	}
})

// Approval returns a request for approval with its state at a time, or ErrNotFound.
func (q Reader) Approval(ctx context.Context, id string, at time.Time) (Approval, error) {
	return db.QueryRow(ctx, q, approvalTable.Scan, approvalTable.Select()+" WHERE id = $2", at.Unix(), id)
}

// ApprovalFilter selects requests for approval. Empty fields match all.
type ApprovalFilter struct {
	MerchantID string
	State      ApprovalState
	At         time.Time // of the states
	Before     string    // a request's id; those listed were made before it
	Limit      int
}

// Approvals lists requests for approval, newest first.
func (q Reader) Approvals(ctx context.Context, f ApprovalFilter) ([]Approval, error) {
	w := db.Where{Args: []any{f.At.Unix()}}
	w.Equal("merchant_id", f.MerchantID)
	if f.State != "" {
		w.Conditions = append(w.Conditions, stateAt+" = "+db.Parameter(w.Next()))
		w.Args = append(w.Args, string(f.State))
	}
	w.Below("id", f.Before)
	return db.QueryAll(ctx, q, approvalTable.Scan, approvalTable.Select()+w.Text()+" ORDER BY id DESC LIMIT "+db.Parameter(w.Next()), append(w.Args, f.Limit)...)
}

// CountOpenApprovals returns how many requests of a merchant can be approved or used at a time.
func (q Reader) CountOpenApprovals(ctx context.Context, merchantID string, at time.Time) (int, error) {
	return db.QueryRow(ctx, q, db.ScanCount, "SELECT count(*) FROM approvals WHERE merchant_id = $1 AND "+isOpen+" AND expires_at > $2", merchantID, at.Unix())
}

// openApproval returns the open request for approval of an action, or ErrNotFound.
func openApproval(ctx context.Context, tx *db.Tx, merchantID string, kind ApprovalKind, hash string, now time.Time) (Approval, error) {
	return db.QueryRow(ctx, tx, approvalTable.Scan, approvalTable.Select()+
		" WHERE merchant_id = $2 AND kind = $3 AND subject_hash = $4 AND "+isOpen+" AND expires_at > $1", now.Unix(), merchantID, string(kind), hash)
}

// expireApprovals stores which requests of the merchant of a new one have expired, so that they can be made again, and
// returns how many are open, and how many of them the same person or key made.
func expireApprovals(ctx context.Context, tx *db.Tx, a Approval) (open, own int, err error) {
	if err := expireOpen(ctx, tx, a.MerchantID, " AND expires_at <= $2", a.RequestedAt.Unix()); err != nil {
		return 0, 0, err
	}
	_, err = db.QueryRow(ctx, tx, func(row db.Scanner) (struct{}, error) { return struct{}{}, row.Scan(&open, &own) },
		"SELECT count(*), count(CASE WHEN requester = $2 THEN 1 END) FROM approvals WHERE merchant_id = $1 AND "+isOpen, a.MerchantID, a.Requester)
	return open, own, err
}

// endApprovalsOf ends the open requests of a key, which is revoked, of its person, and of sessions that depend on it.
func endApprovalsOf(ctx context.Context, tx *db.Tx, r Record) error {
	return expireOpen(ctx, tx, r.MerchantID, " AND (' ' || requester || ' ' LIKE $2 OR requester = NULLIF($3, ''))", "% "+r.ID+" %", r.PersonID)
}

// expireOpen stores that the open requests of a merchant have expired: all, or the ones that meet a condition, which
// has the parameters from $2 on.
func expireOpen(ctx context.Context, tx *db.Tx, merchantID, condition string, args ...any) error {
	which := "merchant_id = $1 AND " + isOpen + condition
	for _, statement := range []string{"DELETE FROM approval_notices WHERE approval_id IN (SELECT id FROM approvals WHERE " + which + ")", "UPDATE approvals SET state = 'expired' WHERE " + which} {
		if _, err := tx.Exec(ctx, statement, append([]any{merchantID}, args...)...); err != nil {
			return err
		}
	}
	return nil
}

// InsertApproval stores a new request.
func InsertApproval(ctx context.Context, tx *db.Tx, a Approval) error {
	return approvalTable.Insert(ctx, tx, "", a)
}

// refuseApproval stores that a person refuses a request.
func refuseApproval(ctx context.Context, tx *db.Tx, id string) error {
	if _, err := tx.Exec(ctx, "UPDATE approvals SET state = 'refused' WHERE id = $1", id); err != nil {
		return err
	}
	return endNotices(ctx, tx, id)
}

// useApproval stores that the action of an open request is made, and reports whether enough people approve it. Their
// memberships cannot end before the transaction does. The policy must be locked.
func useApproval(ctx context.Context, tx *db.Tx, a Approval, now time.Time) (bool, error) {
	voters, err := db.QueryAll(ctx, tx, db.ScanID, "SELECT id FROM api_keys WHERE merchant_id = $1 AND "+mayApproveAt("$2")+" AND "+approves("$3")+" ORDER BY id"+tx.ForUpdate(),
		a.MerchantID, now.Unix(), a.ID)
	if err != nil || len(voters) < a.Needed {
		return false, err
	}
	if _, err = tx.Exec(ctx, "UPDATE approvals SET used_at = $2 WHERE id = $1", a.ID, now.Unix()); err == nil {
		err = endNotices(ctx, tx, a.ID)
	}
	return true, err
}

var voteTable = db.NewTable("approval_votes", func(v *ApprovalVote) []db.Column {
	return []db.Column{
		db.Col("person_id", db.Text(&v.PersonID)),
		db.Col("approves", db.Bool(&v.Approves)),
		db.Col("at", db.Seconds(&v.At)),
		db.Expr("(SELECT p.name FROM people p WHERE p.id = approval_votes.person_id)", db.Text(&v.Name)),
	}
})

// ApprovalVotes returns the votes about a request, the first one first.
func (q Reader) ApprovalVotes(ctx context.Context, id string) ([]ApprovalVote, error) {
	return db.QueryAll(ctx, q, voteTable.Scan, voteTable.Select()+" WHERE approval_id = $1 ORDER BY at, person_id", id)
}

// putVote stores a vote in place of an earlier one of the person.
func putVote(ctx context.Context, tx *db.Tx, id string, v ApprovalVote) error {
	return tx.Insert(ctx, voteTable.Insertion("ON CONFLICT (approval_id, person_id) DO UPDATE SET approves = excluded.approves, at = excluded.at", "approval_id"),
		[][]any{voteTable.Values(v, id)})
}

// Approvers returns the memberships of the people who may approve actions of a merchant at a time.
func (q Reader) Approvers(ctx context.Context, merchantID string, at time.Time) ([]Record, error) {
	return approvers(ctx, q, merchantID, at, "")
}

// approvers is Reader.Approvers. With a lock, the memberships cannot end before the transaction does. A person has one
// membership of a merchant.
func approvers(ctx context.Context, q db.Querier, merchantID string, at time.Time, lock string) ([]Record, error) {
	return db.QueryAll(ctx, q, keyTable.Scan, keyTable.Select()+" WHERE merchant_id = $1 AND "+mayApproveAt("$2")+" ORDER BY id"+lock, merchantID, at.Unix())
}

var policyTable = db.NewTable("approval_policies", func(p *ApprovalPolicy) []db.Column {
	return []db.Column{
		db.Col("people", db.Int(&p.People)),
		db.Col("refunds_above", db.Amount(&p.RefundsAbove)),
		db.Col("attributions_above", db.Amount(&p.AttributionsAbove)),
		db.Col("addresses", db.Bool(&p.Addresses)),
		db.Col("keys", db.Bool(&p.Keys)),
	}
})

// approvalPolicy returns the policy of a merchant, which is zero if it has none. With a lock, transactions that lock it
// happen one after the other: requests, votes and uses.
func approvalPolicy(ctx context.Context, q db.Querier, merchantID, lock string) (ApprovalPolicy, error) {
	p, err := db.QueryRow(ctx, q, policyTable.Scan, policyTable.Select()+" WHERE merchant_id = $1"+lock, merchantID)
	return p, db.IgnoreNotFound(err)
}

// PutApprovalPolicy stores the policy of a merchant. A policy that is off stays as a row, which is locked.
func PutApprovalPolicy(ctx context.Context, tx *db.Tx, merchantID string, p ApprovalPolicy) error {
	return tx.Insert(ctx, policyTable.Insertion("ON CONFLICT (merchant_id) DO UPDATE SET "+policyTable.Excluded(), "merchant_id"), [][]any{policyTable.Values(p, merchantID)})
}

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
