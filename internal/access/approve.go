package access

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// RequestApproval returns err with the open request for approval of its action if err is an *ApprovalRequiredError, and
// makes the request if it is missing. It returns other errors unchanged. Errors are also ErrTooManyApprovals, and
// ErrApprovalEnded if the policy does not guard the action any longer.
func (m *SessionManager) RequestApproval(ctx context.Context, err error) error {
	required := (*ApprovalRequiredError)(nil)
	if !errors.As(err, &required) || required.Request.ID != "" {
		return err
	}
	now, merchantID := m.now(), required.By.MerchantID
	text, hash := required.subject()
	var a Approval
	err = m.cfg.Store.Update(ctx, func(tx *db.Tx) error {
		policy, err := approvalPolicy(ctx, tx, merchantID, tx.ForUpdate())
		if err != nil {
			return err
		}
		if !policy.guards(required.GuardedAction) {
			return ErrApprovalEnded
		}
		if a, err = openApproval(ctx, tx, merchantID, required.Kind, hash, now); !errors.Is(err, db.ErrNotFound) {
			return err
		}
		a = Approval{
			ID: m.ids.New(PrefixApproval), MerchantID: merchantID, Kind: required.Kind, Subject: text, Hash: hash, State: ApprovalRequested,
			People: policy.People, Needed: policy.People, RequestedBy: shorten(required.By.Label()), Requester: required.By.Holder(), RequestedAt: now, ExpiresAt: now.Add(ApprovalLifetime),
		}
		if n, own, err := expireApprovals(ctx, tx, a); err != nil {
			return err
		} else if n >= MaxApprovals || own >= MaxApprovalsOf {
			return ErrTooManyApprovals
		}
		if err := InsertApproval(ctx, tx, a); err != nil {
			return err
		}
		if err := insertNotices(ctx, tx, a); err != nil {
			return err
		}
		return AppendAudit(ctx, tx, m.approvalEntry(ctx, ActionApprovalRequest, a))
	})
	if err == nil {
		err = &ApprovalRequiredError{required.GuardedAction, a}
	}
	return err
}

// approvalEntry returns the audit entry of a request, with its action.
func (m *SessionManager) approvalEntry(ctx context.Context, action Action, a Approval) Entry {
	return NewEntry(ctx, m.now(), Change{MerchantID: a.MerchantID, Action: action, Object: a.ID, After: map[string]any{"kind": a.Kind, "subject": a.Subject}})
}

// Vote records that the person of a session approves or refuses a request of the principal's merchant. One refusal
// refuses it; after an approval the person may still refuse. Errors are db.ErrNotFound, ErrMayNotApprove,
// ErrUnconfirmed and ErrApprovalEnded.
func (m *SessionManager) Vote(ctx context.Context, s Session, by Principal, id string, approves bool) error {
	if s.PersonID == "" || by.PersonID != s.PersonID || by.MerchantID == "" {
		return ErrMayNotApprove
	}
	now := m.now()
	return m.cfg.Store.Update(ctx, func(tx *db.Tx) error {
		if err := m.wantConfirmed(ctx, tx, s); err != nil {
			return err
		}
		a, err := lockOpenApproval(ctx, tx, by.MerchantID, id, now)
		if err != nil {
			return err
		}
		if err := putVote(ctx, tx, a.ID, ApprovalVote{PersonID: s.PersonID, Approves: approves, At: now}); err != nil {
			return err
		}
		people, err := approvers(ctx, tx, a.MerchantID, now, tx.ForUpdate())
		if err == nil && !slices.ContainsFunc(people, func(r Record) bool { return r.PersonID == s.PersonID }) {
			err = ErrMayNotApprove
		}
		action := ActionApprovalApprove
		if !approves && err == nil {
			action, err = ActionApprovalRefuse, refuseApproval(ctx, tx, a.ID)
		}
		if err != nil {
			return err
		}
		return AppendAudit(ctx, tx, m.approvalEntry(ctx, action, a))
	})
}

// lockOpenApproval returns an open request of a merchant under the lock of its policy. Errors are db.ErrNotFound and
// ErrApprovalEnded.
func lockOpenApproval(ctx context.Context, tx *db.Tx, merchantID, id string, now time.Time) (Approval, error) {
	if _, err := approvalPolicy(ctx, tx, merchantID, tx.ForUpdate()); err != nil {
		return Approval{}, err
	}
	a, err := NewReader(tx).Approval(ctx, id, now)
	switch {
	case err != nil:
	case a.MerchantID != merchantID:
		err = db.ErrNotFound
	case a.State != ApprovalRequested && a.State != ApprovalApproved:
		err = ErrApprovalEnded
	}
	return a, err
}

// ApprovalPolicy returns the policy of a merchant that the principal sees.
func (m *SessionManager) ApprovalPolicy(ctx context.Context, by Principal, merchantID string) (ApprovalPolicy, error) {
	if !by.Sees(merchantID) {
		return ApprovalPolicy{}, db.ErrNotFound
	}
	return approvalPolicy(ctx, m.cfg.Store, merchantID, "")
}

// OpenApprovals returns how many requests for approval are open of a merchant that the principal sees.
func (m *SessionManager) OpenApprovals(ctx context.Context, by Principal, merchantID string) (int, error) {
	if !by.Sees(merchantID) {
		return 0, db.ErrNotFound
	}
	return NewReader(m.cfg.Store).CountOpenApprovals(ctx, merchantID, m.now())
}

// SetApprovalPolicy sets the policy of a merchant. If one is in force, a merchant's principal needs approvals for that.
// It ends the open invitations that it guards, and the former one did not. Without a policy, no request stays open.
// Guarded addresses need a list of allowed ones, because without it each invoice names its address. Errors are
// db.ErrNotFound, *ScopeError, *invoice.FieldError and *ApprovalRequiredError.
func (m *SessionManager) SetApprovalPolicy(ctx context.Context, by Principal, merchantID string, p ApprovalPolicy) error {
	if merchantID == "" || !by.Sees(merchantID) || !m.hasMerchant(merchantID) {
		return db.ErrNotFound
	}
	if err := mayMake(by, NewScopes(KeysWrite)); err != nil {
		return err
	}
	now := m.now()
	return m.cfg.Store.Update(ctx, func(tx *db.Tx) error {
		if err := LockKeys(ctx, tx); err != nil { // so that no one is invited under the former policy
			return err
		}
		was, err := approvalPolicy(ctx, tx, merchantID, tx.ForUpdate())
		if err != nil || was == p {
			return err
		}
		if err := wantPossible(ctx, tx, merchantID, p, now); err != nil {
			return err
		}
		entries, err := WantApproval(ctx, tx, now, GuardedAction{By: by, Kind: OfPolicy, Subject: PolicyChange{p, was}})
		if err != nil {
			return err
		}
		err = endUnguarded(ctx, tx, merchantID, was, p, now)
		if err == nil && p.People == 0 {
			err = expireOpen(ctx, tx, merchantID, "")
		}
		if err == nil {
			err = PutApprovalPolicy(ctx, tx, merchantID, p)
		}
		if err != nil {
			return err
		}
		return AppendAudit(ctx, tx, append(entries, NewEntry(ctx, now, Change{MerchantID: merchantID, Action: ActionApprovalPolicy, Object: merchantID, Before: was, After: p}))...)
	})
}

// PolicyChange is a change of a policy as people see it who approve it. An approval does not count once another change
// was made.
type PolicyChange struct {
	ApprovalPolicy
	Was ApprovalPolicy `json:"was"`
}

// endUnguarded deletes the open invitations that a new policy guards, and the former one did not.
func endUnguarded(ctx context.Context, tx *db.Tx, merchantID string, was, is ApprovalPolicy, now time.Time) error {
	open, err := invitations(ctx, tx, merchantID, now, MaxInvitations)
	for _, i := range open {
		if invited := (GuardedAction{Kind: OfMember, Scopes: i.Scopes}); err == nil && is.guards(invited) && !was.guards(invited) {
			err = uninvite(ctx, tx, merchantID, i.Email, now)
		}
	}
	return err
}

// wantPossible returns a *invoice.FieldError if a merchant has too few people for a policy, or no list of allowed
// addresses that it can change and the policy guards addresses.
func wantPossible(ctx context.Context, tx *db.Tx, merchantID string, p ApprovalPolicy, now time.Time) error {
	people, err := approvers(ctx, tx, merchantID, now, "")
	if err == nil {
		err = p.check(len(people))
	}
	if err != nil || !p.Addresses {
		return err
	}
	is, err := Merchant(ctx, tx, merchantID)
	if errors.Is(err, db.ErrNotFound) || err == nil && len(is.Allowed) == 0 {
		err = &invoice.FieldError{Field: "addresses", Detail: "needs allowedAddresses of the merchant; set them first"}
	}
	return err
}

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
