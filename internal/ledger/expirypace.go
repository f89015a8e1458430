package ledger

import "time"

const (
	// leastExpiring and mostExpiring bound the invoices that one transaction expires.
	leastExpiring, mostExpiring = 25, 500
	// expiryTurn is how long such a transaction may keep others from inserting events before its
	// commit. A commit takes as long with few invoices as with many.
	expiryTurn = 3 * time.Millisecond
	// expiryShare is the part of a transaction's time for which it may keep others from inserting events,
	// if that is longer than expiryTurn. On SQLite it is all of its time.
	expiryShare = 5
	// expiryRest is the part of the time of others for which the next transaction gives priority to
	// waiting creates, so that very many creates do not keep invoices from expiring.
	expiryRest = 4
	// expiryShift is how long invoices are expired before the chain's newer blocks are read.
	expiryShift = 2 * time.Second
)

// expiryPace is how many invoices a transaction expires, so that others do not wait long for it.
type expiryPace struct{ batch int }

func newExpiryPace() *expiryPace { return &expiryPace{4 * leastExpiring} }

// next sets the size of the next batch from how long this one took and how long it kept others from
// inserting events. It returns how long creates have priority. The size at most halves or doubles,
// because one measurement is not reliable.
func (p *expiryPace) next(took, held time.Duration) (rest time.Duration) {
	next := 2 * p.batch
	if held > 0 {
		next = min(next, int(int64(p.batch)*int64(max(expiryTurn, took/expiryShare))/int64(held)))
	}
	p.batch = min(max(next, p.batch/2, leastExpiring), mostExpiring)
	return held / expiryRest
}
