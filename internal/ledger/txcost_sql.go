package ledger

import "time"

// TxCost is the cost of a mined transaction.
type TxCost struct {
	Gwei int64     // billionths of the chain's native coin
	At   time.Time // when it became known
	// Scheduled is At by the schedule's clock.
	Scheduled time.Time
}
