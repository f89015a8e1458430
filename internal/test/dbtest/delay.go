package dbtest

import (
	"io"
	"sync/atomic"
	"time"
)

// inFlight is how many chunks are on their way through a delay; beyond it, a reader waits.
const inFlight = 4096

// chunk is the result of one read.
type chunk struct {
	due  time.Time // when it arrives
	data []byte
	err  error
}

// late reads chunks when they are due.
type late struct {
	chunks <-chan chunk
	rest   []byte
}

// delayed returns a reader of from with a delay, which may change. It reads until from ends.
func delayed(from io.Reader, by *atomic.Int64) io.Reader {
	chunks := make(chan chunk, inFlight)
	go func() {
		defer close(chunks)
		for {
			buffer := make([]byte, 16<<10)
			n, err := from.Read(buffer)
			chunks <- chunk{time.Now().Add(time.Duration(by.Load())), buffer[:n], err}
			if err != nil {
				return
			}
		}
	}()
	return &late{chunks: chunks}
}

// Read is io.Reader's.
func (l *late) Read(b []byte) (int, error) {
	if len(l.rest) == 0 {
		next, ok := <-l.chunks
		if !ok {
			return 0, io.EOF
		}
		if wait := time.Until(next.due); wait > 0 {
			timer := time.NewTimer(wait)
			<-timer.C
		}
		if l.rest = next.data; next.err != nil && len(next.data) == 0 {
			return 0, next.err
		}
	}
	n := copy(b, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}
