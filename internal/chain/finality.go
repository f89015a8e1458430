package chain

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Tags by which a node names the newest block that it takes for settled.
const (
	TagSafe      = "safe"
	TagFinalized = "finalized"
)

// MaxDepth is the largest number of blocks that a finality may ask for.
const MaxDepth = 10_000

// Finality says when a block can no longer be replaced: it is at or below the
// node's block of that Tag (unless Tag is empty), and Depth blocks stand on
// top of it. Both must hold. The zero Finality trusts a block at once.
type Finality struct {
	Tag   string // "", TagSafe or TagFinalized
	Depth uint64 // blocks on top, at most MaxDepth
}

// ParseFinality reads a depth in blocks ("12"), a tag ("safe", "finalized"),
// or both joined by a plus sign ("finalized+128").
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

// Height returns the number of the newest final block of a chain whose head is
// head, and whose block of f's tag is tagged (ignored without a tag). ok is
// false while no block is final.
func (f Finality) Height(head, tagged uint64) (line uint64, ok bool) {
	if head < f.Depth {
		return 0, false
	}
	line = head - f.Depth
	if f.Tag != "" {
		line = min(line, tagged)
	}
	return line, true
}
