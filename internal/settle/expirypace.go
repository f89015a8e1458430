package settle

import "time"

const (
	// leastExpiring and mostExpiring bound the invoices that one transaction expires.
	leastExpiring, mostExpiring = 25, 500
	// expiryTurn is how long such a transaction may keep others from inserting events before its
	// commit. A commit takes as long with few invoices as with many.
	expiryTurn = 3 * time.Millisecond
	// expiryShare is the part of a transaction's time for which it may keep others from inserting
	// events, where that is longer than expiryTurn. On SQLite it is all of its time.
	expiryShare = 5
	// expiryRest is the part of the time of others for which the next transaction lets creates that
	// wait go first, so that very many creates do not keep invoices from expiring.
	expiryRest = 4
	// expiryShift is how long invoices expire until the chain's newer blocks are read.
	expiryShift = 2 * time.Second
)

// expiryPace is how many invoices a transaction expires, so that others wait little for it.
type expiryPace struct{ batch int }

func newExpiryPace() *expiryPace { return &expiryPace{4 * leastExpiring} }

// next sets the size of the next batch by how long this one took, and for how long of that it
// kept others from inserting events. It returns how long creates may go first. The size changes by half
// or to the double at most, since one time says little.
func (p *expiryPace) next(took, held time.Duration) (rest time.Duration) {
	next := 2 * p.batch
	if held > 0 {
		next = min(next, int(int64(p.batch)*int64(max(expiryTurn, took/expiryShare))/int64(held)))
	}
	p.batch = min(max(next, p.batch/2, leastExpiring), mostExpiring)
	return held / expiryRest
}
