package invoice

import (
	"cmp"
	"time"
)

// Limits of submissions.
const (
	// MaxSubmissions bounds the submissions of a refund, also those that were withdrawn.
	MaxSubmissions = 50
	// SubmissionPatience is how long a submission cannot be withdrawn. It bounds withdrawal by other people while the
	// wallet has not answered, and withdrawal by anyone while its transaction may be on its way to the nodes.
	SubmissionPatience = 10 * time.Minute
)

// Submission records that somebody is sending the transaction of a prepared refund. A refund has only one submission in
// force at a time, so that two people do not send it twice.
type Submission struct {
	ID        string
	RefundID  string
	KeyID     string // of the key that began it; empty if the service has no keys
	By        string // name of that key
	StartedAt time.Time
	// Scheduled is StartedAt by the schedule's clock, which does not jump, or the last time when TxHash was recorded or
	// seen at a node.
	Scheduled time.Time
	TxHash    Hash // zero while it is not known
	// SignedHash is the TxHash before, if a reorg dropped the transaction TxHash: a contract's owners may have signed it.
	SignedHash Hash

	WithdrawnBy string    // name of the key that withdrew it; empty while it is in force
	WithdrawnAt time.Time // zero while it is in force
}

// InForce reports whether the submission has not been withdrawn.
func (s Submission) InForce() bool { return s.WithdrawnAt.IsZero() }

// Signed returns the hash that the wallet answered, or zero.
func (s Submission) Signed() Hash {
	return cmp.Or(s.SignedHash, s.TxHash)
}

// Withdraw returns the submission as withdrawn by the key with an id and a name. failed is set if its transaction was
// mined without effect, or can no longer be executed. scheduled is the time by the schedule's clock. ok is false if a
// transaction may still be sent: SubmissionPatience must be over by both clocks.
func (s Submission) Withdraw(keyID, by string, failed bool, now, scheduled time.Time) (withdrawn Submission, ok bool) {
	atOnce := failed || s.TxHash.IsZero() && s.KeyID == keyID
	if !atOnce && (now.Before(s.StartedAt.Add(SubmissionPatience)) || scheduled.Before(s.Scheduled.Add(SubmissionPatience))) {
		return s, false
	}
	s.WithdrawnBy, s.WithdrawnAt = by, now
	return s, true
}

// InForceOf returns the submission in force; ok is false without one.
func InForceOf(all []Submission) (s Submission, ok bool) {
	for _, s := range all {
		if s.InForce() {
			return s, true
		}
	}
	return Submission{}, false
}
