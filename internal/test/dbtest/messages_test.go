package dbtest

import (
	"context"
	"encoding/binary"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/quittance/quittance/internal/test/expect"
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

// TestTurns checks that a statement is a round trip, and that a ping is not counted.
func TestTurns(t *testing.T) {
	t.Parallel()
	proxy, through, err := StartProxy(t.Context(), Postgres(t), 0)
	expect.OK(t, err)
	conn, err := pgx.Connect(t.Context(), through)
	expect.OK(t, err)
	t.Cleanup(func() { expect.NoError(t, errors.Join(conn.Close(context.Background()), proxy.Close())) })
	turns := func(do func() error) int64 {
		before := proxy.Turns()
		expect.OK(t, do())
		return proxy.Turns() - before
	}
	if n := turns(func() error { return conn.Ping(t.Context()) }); n != 0 {
		t.Errorf("a ping counts as %d round trips, want 0", n)
	}
	statement := func() error { _, err := conn.Exec(t.Context(), "SELECT 1"); return err }
	if n := turns(func() error { return errors.Join(statement(), statement()) }); n != 2 {
		t.Errorf("two statements count as %d round trips, want 2", n)
	}
}
