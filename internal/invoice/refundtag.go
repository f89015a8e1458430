package invoice

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"
)

// idBytes is how many bytes an identifier holds. A tag holds two identifiers.
const idBytes = 16

// RefundTag returns the tag that identifies a prepared refund in the calldata of its transaction: the bytes of the
// payment's id, then the bytes of the refund's id. A database that lost the refund can find its payment by the tag.
func RefundTag(paymentID, refundID string) (tag Hash, err error) {
	if err := parseID(tag[:idBytes], PrefixPayment, paymentID); err != nil {
		return Hash{}, err
	}
	if err := parseID(tag[idBytes:], PrefixRefund, refundID); err != nil {
		return Hash{}, err
	}
	return tag, nil
}

// parseID writes the bytes of an identifier to to.
func parseID(to []byte, prefix, id string) error {
	text, ok := strings.CutPrefix(id, prefix)
	b, err := crockford.DecodeString(text)
	if !ok || err != nil || len(b) != idBytes {
		return fmt.Errorf("%q is not an identifier that begins with %s", id, prefix)
	}
	copy(to, b)
	return nil
}

// ParseRefundTag returns the identifiers in a tag and the time when the refund was prepared. ok is false if RefundTag
// cannot have made the tag, because its second half is not a UUIDv7.
func ParseRefundTag(tag Hash) (paymentID, refundID string, preparedAt time.Time, ok bool) {
	id := tag[idBytes:]
	if id[6]>>4 != 7 || id[8]>>6 != 2 {
		return "", "", time.Time{}, false
	}
	ms := binary.BigEndian.Uint64(id[:8]) >> 16
	return PrefixPayment + Text(tag[:idBytes]), PrefixRefund + Text(id), time.UnixMilli(int64(ms)).UTC(), true
}
