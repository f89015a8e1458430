package chain

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Block tags of finality.
const (
	TagSafe      = "safe"
	TagFinalized = "finalized"
)

// MaxDepth is the largest depth of a finality.
const MaxDepth = 10_000

// Finality defines when a block can no longer be replaced: it is at or below the node's block with that Tag (unless Tag
// is empty), and has Depth blocks on top of it. Both must hold. With the zero Finality every block is final
// immediately.
type Finality struct {
	Tag   string // "", TagSafe or TagFinalized
	Depth uint64 // blocks on top, up to MaxDepth
}

// ParseFinality parses a depth in blocks ("12"), a tag ("safe", "finalized"), or both joined by a plus sign
// ("finalized+128").
func ParseFinality(s string) (Finality, error) {
	depth, f := s, Finality{}
	if tag, rest, both := strings.Cut(s, "+"); tag == TagSafe || tag == TagFinalized {
		f.Tag = tag
		if depth = rest; !both {
			depth = "0"
		}
	}
	n, err := strconv.ParseUint(depth, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) || n > MaxDepth:
		return Finality{}, fmt.Errorf("is %q; at most %d blocks can be asked for", s, MaxDepth)
	case err != nil:
		return Finality{}, fmt.Errorf("is %q; want a number of blocks, safe, finalized, or a tag and a number such as finalized+128", s)
	}
	f.Depth = n
	return f, nil
}

// String writes f as ParseFinality reads it.
func (f Finality) String() string {
	switch {
	case f.Tag == "":
		return strconv.FormatUint(f.Depth, 10)
	case f.Depth == 0:
		return f.Tag
	}
	return fmt.Sprintf("%s+%d", f.Tag, f.Depth)
}

// Height returns the finalized height of a chain with this head and this newest block with f's tag, which is ignored
// without a tag. ok is false while no block is final.
func (f Finality) Height(head, tagged uint64) (height uint64, ok bool) {
	if head < f.Depth {
		return 0, false
	}
	height = head - f.Depth
	if f.Tag != "" {
		height = min(height, tagged)
	}
	return height, true
}
