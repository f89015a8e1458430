package invoice

// Header identifies a block and its parent.
type Header struct {
	Number uint64
	Hash   Hash
	Parent Hash
	Time   int64 // Unix seconds: the block's timestamp
}
