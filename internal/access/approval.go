package access

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// Approval is a request that several people approve one action of a merchant.
type Approval struct {
	ID          string // PrefixApproval and 26 characters
	MerchantID  string
	Kind        ApprovalKind
	Subject     string // JSON of the exact action, which people see
	Hash        string // SHA-256 of Subject, in hex
	State       ApprovalState
	People      int    // how many approvals the policy wanted at the time of the request
	Needed      int    // the same, or more if the policy wants more now
	RequestedBy string // label of the principal
	Requester   string // the principal's Holder
	RequestedAt time.Time
	ExpiresAt   time.Time
	UsedAt      time.Time // when the action was made; zero before
}

// PrefixApproval begins the id of a request for approval.
const PrefixApproval = "apr_"

// Limits of approvals.
const (
	ApprovalLifetime = 7 * 24 * time.Hour  // how long a request can be approved and used
	ApprovalKept     = 90 * 24 * time.Hour // how long after that it is kept
	MaxApprovals     = 100                 // open requests of a merchant
	MaxApprovalsOf   = 20                  // of them, by one person or key
	MinApprovers     = 2                   // people whom a policy wants
	MaxApprovers     = 10
)

// ApprovalKind is a kind of action that a policy guards.
type ApprovalKind string

// Kinds of actions.
const (
	OfRefund      ApprovalKind = "refund"
	OfAttribution ApprovalKind = "attribution"
	OfAddresses   ApprovalKind = "addresses"
	OfKey         ApprovalKind = "key"
	OfMember      ApprovalKind = "member" // an invitation
	OfPolicy      ApprovalKind = "policy"
)

// ApprovalState is the state of a request.
type ApprovalState string

// States of requests. The first two are open.
const (
	ApprovalRequested ApprovalState = "requested"
	ApprovalApproved  ApprovalState = "approved"
	ApprovalUsed      ApprovalState = "used"
	ApprovalRefused   ApprovalState = "refused"
	ApprovalExpired   ApprovalState = "expired"
)

// ApprovalStates are all states.
var ApprovalStates = []ApprovalState{ApprovalRequested, ApprovalApproved, ApprovalUsed, ApprovalRefused, ApprovalExpired}

// ApprovalVote is a person's vote about a request.
type ApprovalVote struct {
	PersonID string
	Name     string // of the person
	Approves bool
	At       time.Time
}

// MayApprove reports whether a member with the scopes may approve: an owner, or a member with the role finance.
func MayApprove(scopes Scopes) bool { return Finance.Within(scopes) }

// ApprovalPolicy is what several people of a merchant must approve. The zero value wants no approvals.
type ApprovalPolicy struct {
	People       int            `json:"people"`       // how many; 0 turns the policy off
	RefundsAbove invoice.Amount `json:"refundsAbove"` // of one payment, in minor units; invoice.MaxAmount for no limit
	// AttributionsAbove is for payments that are attributed by hand.
	AttributionsAbove invoice.Amount `json:"attributionsAbove"`
	Addresses         bool           `json:"addresses"` // changes of default and allowed addresses
	Keys              bool           `json:"keys"`      // keys and invitations with scopes of wide
}

// wide are the scopes by which a key moves money or opens ways to it.
var wide = NewScopes(InvoicesWrite, AttributionWrite, WebhooksWrite, KeysWrite)

// GuardedAction is an action that a policy may guard.
type GuardedAction struct {
	By      Principal // who acts
	Kind    ApprovalKind
	Subject any            // has a form in JSON, which is the exact action
	Amount  invoice.Amount // of an attribution, or of a refund with the other refunds of the payment
	Scopes  Scopes         // of a key or an invitation
}

// subject returns the text of the action and its hash.
func (a GuardedAction) subject() (text, hash string) {
	text = db.JSONText(a.Subject)
	sum := sha256.Sum256([]byte(text))
	return text, hex.EncodeToString(sum[:])
}

// guards reports whether the policy wants approvals of an action. It always guards itself, and who may approve.
func (p ApprovalPolicy) guards(a GuardedAction) bool {
	guarded := true
	switch a.Kind {
	case OfRefund:
		guarded = p.RefundsAbove.Less(a.Amount)
	case OfAttribution:
		guarded = p.AttributionsAbove.Less(a.Amount)
	case OfAddresses:
		guarded = p.Addresses
	case OfKey:
		guarded = p.Keys && a.Scopes&wide != 0
	case OfMember:
		guarded = p.Keys && a.Scopes&wide != 0 || MayApprove(a.Scopes)
	case OfPolicy:
	}
	return guarded && p.People > 0
}

// ApprovalRequiredError means that people must approve an action before it is made.
type ApprovalRequiredError struct {
	GuardedAction
	Request Approval // zero before RequestApproval
}

// Error names the kind of action.
func (e *ApprovalRequiredError) Error() string {
	return "several people must approve this " + string(e.Kind)
}

// Errors of votes and requests.
var (
	// ErrApprovalEnded: the request was used, refused or has expired, or the policy has changed.
	ErrApprovalEnded = errors.New("the request for approval has ended")
	// ErrMayNotApprove: the session is not of a person who may approve.
	ErrMayNotApprove = errors.New("only an owner or a person with the role finance approves")
	// ErrTooManyApprovals: the merchant has MaxApprovals open requests, or one person or key made MaxApprovalsOf of them.
	ErrTooManyApprovals = errors.New("too many requests for approval are open")
)

// WantApproval returns an *ApprovalRequiredError if a policy of the acting merchant guards the action, and it was not
// approved. Otherwise it uses the approval up in the transaction of the action, and returns the audit entries of that.
// The operator needs no approval, and the zero principal may do nothing. The votes are counted again: only the people
// count who may approve now.
func WantApproval(ctx context.Context, tx *db.Tx, now time.Time, a GuardedAction) ([]Entry, error) {
	if a.By.IsOperator() {
		return nil, nil
	}
	if a.By.MerchantID == "" {
		return nil, fmt.Errorf("%s without a principal, whose approvals are not known", a.Kind)
	}
	policy, err := approvalPolicy(ctx, tx, a.By.MerchantID, tx.ForUpdate())
	if err != nil || !policy.guards(a) {
		return nil, err
	}
	_, hash := a.subject()
	found, err := openApproval(ctx, tx, a.By.MerchantID, a.Kind, hash, now)
	if errors.Is(err, db.ErrNotFound) {
		return nil, &ApprovalRequiredError{GuardedAction: a}
	}
	if err != nil {
		return nil, err
	}
	used, err := useApproval(ctx, tx, found, now)
	if err != nil {
		return nil, err
	}
	if !used {
		return nil, &ApprovalRequiredError{GuardedAction: a}
	}
	return []Entry{NewEntry(ctx, now, Change{MerchantID: found.MerchantID, Action: ActionApprovalUse, Object: found.ID})}, nil
}

// check returns a *invoice.FieldError unless a number of people can fulfil the policy.
func (p ApprovalPolicy) check(people int) error {
	if p.People == 0 || p.People >= MinApprovers && p.People <= min(people, MaxApprovers) {
		return nil
	}
	return &invoice.FieldError{Field: "people", Detail: fmt.Sprintf("must be 0, or %d to %d, and at most as many as may approve, %d", MinApprovers, MaxApprovers, people)}
}
