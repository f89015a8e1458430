package invoice

import "time"

// Limits of submissions.
const (
	// MaxSubmissions bounds the submissions of a refund, also those that were withdrawn.
	MaxSubmissions = 50
	// SubmissionPatience is how long a submission may be withdrawn neither by others while its
	// wallet has not answered, nor by anybody while its transaction may be on its way to the
	// nodes.
	SubmissionPatience = 10 * time.Minute
)

// Submission records that somebody sends the transaction of a prepared refund. Of a refund,
// at most one is in force, so that two people do not send it twice.
type Submission struct {
	ID        string
	RefundID  string
	KeyID     string // of the key that began it; empty at a service without keys
	By        string // name of that key
	StartedAt time.Time
	// Scheduled is StartedAt by the schedule's clock, which does not jump, or the last time when TxHash was
	// recorded or a node had it.
	Scheduled time.Time
	TxHash    Hash // zero while it is not known

	WithdrawnBy string    // who withdrew it; empty if nobody did
	WithdrawnAt time.Time // zero if nobody did
}

// InForce reports whether nobody withdrew the submission.
func (s Submission) InForce() bool { return s.WithdrawnAt.IsZero() }

// Withdraw returns the submission withdrawn by the key with an id and a name. failed is set if its
// transaction was mined without effect. scheduled is the time by the schedule's clock. ok is false if
// something may be sent: SubmissionPatience must be over by both clocks.
func (s Submission) Withdraw(keyID, by string, failed bool, now, scheduled time.Time) (withdrawn Submission, ok bool) {
	atOnce := failed || s.TxHash.IsZero() && s.KeyID == keyID
	if !atOnce && (now.Before(s.StartedAt.Add(SubmissionPatience)) || scheduled.Before(s.Scheduled.Add(SubmissionPatience))) {
		return s, false
	}
	s.WithdrawnBy, s.WithdrawnAt = by, now
	return s, true
}

// InForceOf returns the submission that is in force, or ok is false.
func InForceOf(all []Submission) (s Submission, ok bool) {
	for _, s := range all {
		if s.InForce() {
			return s, true
		}
	}
	return Submission{}, false
}
