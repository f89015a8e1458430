package invoice

import "time"

// Header identifies a block and its parent.
type Header struct {
	Number uint64
	Hash   Hash
	Parent Hash
	Time   time.Time // the block's timestamp
}

// SameBlock reports whether two headers of one height have the same hash and time. A hash commits to the time, but a node
// can return one with a time that does not belong to it.
func (h Header) SameBlock(other Header) bool { return h.Hash == other.Hash && h.Time.Equal(other.Time) }
