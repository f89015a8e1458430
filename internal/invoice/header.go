package invoice

import "time"

// Header identifies a block and its parent.
type Header struct {
	Number uint64
	Hash   Hash
	Parent Hash
	Time   time.Time // the block's timestamp
}
