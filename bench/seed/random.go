package seed

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// draw is a random choice for an invoice. Draws are independent of each other.
type draw uint64

const (
	drawOwner draw = iota
	drawFate
	drawDelay
	drawCustomer
	drawBasket
	drawPayer
	drawStray
	drawID
	drawDelivery
	drawDuration
	drawExpiry
	hashTx
	hashBlock
	hashMerchant
	hashPayer
)

// random returns a number for an invoice: SplitMix64, which spreads consecutive numbers over
// all of 64 bits.
func (m *Maker) random(n int, d draw) uint64 {
	z := mix(m.Seed+0x9e3779b97f4a7c15*uint64(d)) + 0x9e3779b97f4a7c15*uint64(n+1)
	return mix(z)
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a number from 0 and below sides.
func (m *Maker) below(sides, n int, d draw) int { return int(m.random(n, d) % uint64(sides)) }

// hash returns a hash for the number of a thing.
func (m *Maker) hash(n int, d draw) (h invoice.Hash) {
	z := m.random(n, d)
	for i := 0; i < len(h); i += 8 {
		z = mix(z + 0x9e3779b97f4a7c15)
		binary.BigEndian.PutUint64(h[i:], z)
	}
	return h
}

func address(h invoice.Hash) (a invoice.Address) {
	copy(a[:], h[:])
	return a
}

// Kinds of identifiers. Payments of an invoice have idPayment and those that follow.
const (
	idInvoice = iota
	idEvent
	idPayment
	idKinds = idPayment + transfers
)

// id returns the identifier of an object that was made at a time. n and kind distinguish objects of
// the same time.
func (m *Maker) id(prefix string, at time.Time, n, kind int) string {
	var tail [8]byte
	binary.BigEndian.PutUint64(tail[:], m.random(n*idKinds+kind, drawID))
	return invoice.NewIDs(func() time.Time { return at }, bytes.NewReader(tail[:])).New(prefix)
}
