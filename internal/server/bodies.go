package server

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/web/webpage"
)

// Limits of request bodies. docs/operations.md has them as a table.
const (
	// bodyTimeout is how long a body may take to arrive. After a start of bodyGrace, it must also arrive
	// at minBodyRate, in bytes a second.
	bodyTimeout = 10 * time.Second
	bodyGrace   = 2 * time.Second
	minBodyRate = 2 << 10
	// requestCost is counted for a request with a body in addition to its bytes. It is about the size of
	// the other memory that the request uses.
	requestCost = 16 << 10
)

// maxBodyBytes bounds the memory that the bodies of a door's requests take, with a requestCost for each.
var maxBodyBytes = map[webpage.Door]int64{webpage.PublicDoor: 16 << 20, webpage.APIDoor: 32 << 20, webpage.OperatorDoor: 4 << 20}

// readAhead counts a request's body against the memory for bodies, by its declared length or else the route's limit,
// and then reads it. The memory is used until done is called. Reads of Body return the same bytes and error. Beyond the
// route's limit that is an *http.MaxBytesError. readAhead returns the errors of Shares.Take.
func (l *requestLimits) readAhead(w http.ResponseWriter, r *http.Request, rt webpage.Route, claims []limits.Claim[sharer]) (done func(), err error) {
	if r.Body == nil || r.Body == http.NoBody {
		return func() {}, nil
	}
	limit := cmp.Or(rt.MaxBody, api.MaxBody)
	size := limit
	if r.ContentLength >= 0 {
		size = min(size, r.ContentLength)
	}
	bodies, cost := l.bodies[rt.Door], requestCost+size
	if err := bodies.Take(cost, claims...); err != nil {
		return nil, err
	}
	done = func() { bodies.Give(cost, claims...) }
	body := r.Body
	timed := &timedReader{body: body, control: http.NewResponseController(w), begun: time.Now()}
	switch {
	case r.ContentLength > max(limit, rt.MaxDrained):
		r.Body = readCloser{failedReader{&http.MaxBytesError{Limit: limit}}, body}
	default:
		conn := connectionFrom(r.Context())
		conn.work(-1)
		r.Body = readCloser{readUpTo(timed, limit, rt.MaxDrained), body}
		conn.work(1)
	}
	return done, nil
}

// readUpTo reads a body up to a limit, and returns a reader of it that ends with the body's error or, beyond the limit,
// with an *http.MaxBytesError. If a body is beyond the limit, it reads up to drain more bytes and drops them.
func readUpTo(body io.Reader, limit, drain int64) io.Reader {
	read, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err == nil && int64(len(read)) > limit {
		_, err = io.Copy(io.Discard, io.LimitReader(body, max(0, drain-int64(len(read)))))
		read = read[:limit]
		if err == nil {
			err = &http.MaxBytesError{Limit: limit}
		}
	}
	if err == nil {
		return bytes.NewReader(read)
	}
	return io.MultiReader(bytes.NewReader(read), failedReader{err})
}

// timedReader reads a body that must arrive in time. A read fails with os.ErrDeadlineExceeded otherwise.
type timedReader struct {
	body    io.Reader
	control *http.ResponseController
	begun   time.Time
	read    int64         // bytes
	allowed time.Duration // the deadline that is set, since begun
}

// Read implements io.Reader.
func (t *timedReader) Read(p []byte) (n int, err error) {
	const step = 100 * time.Millisecond // a deadline moves by at least this
	if allowed := bodyTime(t.read); allowed >= t.allowed+step || allowed == bodyTimeout && allowed > t.allowed {
		t.allowed = allowed
		if err := t.setDeadline(t.begun.Add(allowed)); err != nil {
			return 0, err
		}
	}
	n, err = t.body.Read(p)
	t.read += int64(n)
	if errors.Is(err, io.EOF) {
		if failed := t.setDeadline(time.Time{}); failed != nil { // the next bytes are another request
			return n, failed
		}
	}
	return n, err
}

func (t *timedReader) setDeadline(at time.Time) error {
	if err := t.control.SetReadDeadline(at); !errors.Is(err, http.ErrNotSupported) { // a recorder in tests
		return err
	}
	return nil
}

// bodyTime returns how long a body may take for a number of bytes and the next one.
func bodyTime(read int64) time.Duration {
	return min(bodyTimeout, bodyGrace+time.Duration(read)*time.Second/minBodyRate)
}

type readCloser struct {
	io.Reader
	io.Closer
}

// failedReader returns an error.
type failedReader struct{ err error }

func (f failedReader) Read([]byte) (int, error) { return 0, f.err }
