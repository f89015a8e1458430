package invoice

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"io"
	"strings"
	"sync"
	"time"
)

// Prefixes of identifiers. Each is followed by 26 characters of lower-case
// Crockford base32.
const (
	PrefixInvoice  = "inv_"
	PrefixEvent    = "evt_"
	PrefixDelivery = "dlv_"
	PrefixNotice   = "ntc_"
	PrefixPayment  = "pay_"
	PrefixRefund   = "ref_"
	PrefixIntent   = "int_"
	PrefixTx       = "ctx_"
	PrefixClaim    = "clm_"
	PrefixSweep    = "swp_"
	PrefixDecision = "dec_"
	// PrefixSubmission begins the id of a submission.
	PrefixSubmission = "sub_"
	// PrefixErasure begins the id of the erasure of a customer.
	PrefixErasure = "ers_"
	// PrefixAuthorization begins the id of an authorization.
	PrefixAuthorization = "aut_"
	// PrefixTimeline begins the id of a timeline.
	PrefixTimeline = "tml_"
)

var crockford = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// Text returns bytes in the alphabet of identifiers.
func Text(b []byte) string { return crockford.EncodeToString(b) }

// IDs makes identifiers that sort by the time they were made: a prefix and a UUIDv7 (RFC 9562). The 12 bits after the
// milliseconds hold a fraction of the millisecond (the RFC's method 3). The identifiers of one IDs value never repeat.
// They do not go backwards when the clock goes back by up to idLead. It is safe for concurrent use.
type IDs struct {
	now  func() time.Time
	rand io.Reader

	mu   sync.Mutex
	last uint64 // newest time handed out, in 60 bits
}

// idLead is how far identifiers may be ahead of the clock. After it went back further, they follow it, because lists and
// statements find an object by the time in its id, which they take for at most a minute from its creation.
const idLead = 30 * time.Second

// NewIDs returns a maker of identifiers from a clock and a source of
// randomness.
func NewIDs(now func() time.Time, rand io.Reader) *IDs {
	return &IDs{now: now, rand: rand}
}

// New returns a fresh identifier. It panics when the source of randomness
// fails, as crypto/rand never does.
func (g *IDs) New(prefix string) string {
	var u [16]byte
	if _, err := io.ReadFull(g.rand, u[8:]); err != nil {
		panic("invoice: source of randomness failed: " + err.Error())
	}
	t := g.tick()
	binary.BigEndian.PutUint64(u[:8], t>>12<<16|0x7000|t&0xfff)
	u[8] = u[8]&0x3f | 0x80
	return prefix + crockford.EncodeToString(u[:])
}

// FirstID returns an identifier that sorts before all that New makes from a time on, and after all that it makes
// before. The time must be in the years 1970 to 9999, and is used to the millisecond.
func FirstID(prefix string, at time.Time) string {
	var u [16]byte
	const msBits = 48
	binary.BigEndian.PutUint64(u[:8], uint64(at.UnixMilli())<<(64-msBits))
	return prefix + crockford.EncodeToString(u[:])
}

// tick returns milliseconds and 1/4096ths of them, larger than any before, unless the clock went back by more than idLead.
func (g *IDs) tick() uint64 {
	n := g.now()
	sub := uint64(n.Nanosecond()%1e6) << 12 / 1e6
	t := uint64(n.UnixMilli())<<12 | sub
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last > t+uint64(idLead.Milliseconds())<<12 {
		g.last = t
	}
	g.last = max(t, g.last+1)
	return g.last
}

// TransferID identifies a transfer by its position on the chain: the chain, the transaction and the ordinal of its log
// within that transaction. A transaction that a reorg moves to another block keeps its ids, and indexing the chain
// again yields the same ones.
func TransferID(prefix, chainKey string, tx Hash, ordinal int) string {
	h := sha256.New()
	io.WriteString(h, chainKey) //nolint:errcheck // a hash never fails to write
	h.Write([]byte{0})
	h.Write(tx[:])
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(ordinal)))
	return prefix + crockford.EncodeToString(h.Sum(nil)[:16])
}

// EventID identifies an event by its type, subject, merchant and invoice. So the event has the same id when it is
// recorded again after the database was restored from a backup. The first bytes come from the invoice's id, which
// contain the time, so that neighbours in an index are written at about the same time.
func EventID(typ EventType, subject, merchantID, invoiceID string) string {
	u := hashParts("event", string(typ), subject, merchantID, invoiceID)
	const timeBytes = 6
	if made, err := crockford.DecodeString(strings.TrimPrefix(invoiceID, PrefixInvoice)); err == nil && len(made) == len(u) {
		copy(u[:timeBytes], made)
	}
	return PrefixEvent + crockford.EncodeToString(u)
}

// DeliveryID identifies the delivery of an event by the event's type, subject, merchant and invoice, so that its
// receiver can recognise it. A service with a database restored from a backup reads the chain again, and delivers the
// events since the backup under the same ids.
func DeliveryID(typ EventType, subject, merchantID, invoiceID string) string {
	return PrefixDelivery + crockford.EncodeToString(hashParts(string(typ), subject, merchantID, invoiceID))
}

// hashParts returns 16 bytes of the hash of texts without zero bytes.
func hashParts(parts ...string) []byte {
	h := sha256.New()
	for _, part := range parts {
		io.WriteString(h, part) //nolint:errcheck // a hash never fails to write
		h.Write([]byte{0})
	}
	return h.Sum(nil)[:16]
}
