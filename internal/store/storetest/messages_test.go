package storetest

import (
	"encoding/binary"
	"sync/atomic"
	"testing"
)

// TestMessages counts statements in a stream that arrives in pieces of each size.
func TestMessages(t *testing.T) {
	t.Parallel()
	var stream []byte
	for _, m := range []struct {
		kind byte
		body string
	}{{'R', "\x00\x00\x00\x00"}, {'2', ""}, {'D', "C\x00\x00\x00\x09COMMIT and more of it"}, {'C', "SELECT 1\x00"}, {'C', "COMMIT\x00"}, {'C', "INSERT 0 64\x00"}, {'Z', "I"}} {
		stream = append(stream, m.kind)
		stream = binary.BigEndian.AppendUint32(stream, uint32(len(m.body)+4))
		stream = append(stream, m.body...)
	}
	for size := 1; size <= len(stream); size++ {
		var m messages
		var statements, commits atomic.Int64
		for rest := stream; len(rest) > 0; {
			n := min(size, len(rest))
			m.scan(rest[:n], &statements, &commits)
			rest = rest[n:]
		}
		if statements.Load() != 3 || commits.Load() != 1 {
			t.Errorf("in pieces of %d: %d statements and %d commits, want 3 and 1", size, statements.Load(), commits.Load())
		}
	}
}
