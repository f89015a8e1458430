package webpage_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/webpage"
)

// service is a server with a handler that begins a stream.
type service struct {
	*httptest.Server
	streams chan *webpage.PushStream
	left    chan struct{}
}

func newService(t *testing.T) *service {
	t.Helper()
	s := &service{streams: make(chan *webpage.PushStream, 1), left: make(chan struct{}, 1)}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Test", "header")
		stream, err := webpage.AcceptStream(w, webpage.EventMessage("status", []byte("first")))
		if err != nil {
			t.Error(err)
			return
		}
		s.streams <- stream
		stream.Serve(r.Context(), func() { s.left <- struct{}{} })
	}))
	t.Cleanup(s.Close)
	return s
}

// open opens a stream. The returned function reads an event's data.
func (s *service) open(t *testing.T) (stream *webpage.PushStream, next func() string, hangUp func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r := expect.Must(http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil))
	answer, err := s.Client().Do(r)
	expect.OK(t, err)
	t.Cleanup(func() { _ = answer.Body.Close() }) // it was cancelled
	header := answer.Header
	if answer.StatusCode != http.StatusOK || header.Get("Content-Type") != webpage.MediaType || header.Get("X-Test") != "header" || header.Get("X-Accel-Buffering") != "no" {
		t.Fatalf("answered %d with %v", answer.StatusCode, header)
	}
	lines := bufio.NewScanner(answer.Body)
	next = func() (data string) {
		for lines.Scan() && lines.Text() != "" {
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				data = text
			}
		}
		return data
	}
	return <-s.streams, next, cancel
}

// TestPushStream sends messages over HTTP/1, with and without TLS, and HTTP/2.
func TestPushStream(t *testing.T) {
	for name, start := range map[string]func(*service){
		"HTTP/1": func(s *service) { s.Start() },
		"TLS":    func(s *service) { s.StartTLS() },
		"HTTP/2": func(s *service) { s.EnableHTTP2 = true; s.StartTLS() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			start(s)
			stream, next, hangUp := s.open(t)
			if got := next(); got != "first" {
				t.Errorf("the stream begins with %q", got)
			}
			for _, message := range []string{"second", "third"} {
				stream.Send(webpage.EventMessage("status", []byte(message)))
				if got := next(); got != message {
					t.Errorf("got %q, want %q", got, message)
				}
			}
			hangUp()
			<-s.left
			stream.Send(webpage.EventMessage("status", []byte("to nobody")))

			stream, next, _ = s.open(t)
			next()
			stream.End()
			stream.End()
			<-s.left
			if got := next(); got != "" {
				t.Errorf("an ended stream has %q", got)
			}
		})
	}
}

// pipeHijacker is a response on one end of a pipe.
type pipeHijacker struct {
	http.ResponseWriter
	conn net.Conn
}

func (p pipeHijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) { return p.conn, nil, nil }

// A client that reads slowly gets the newest message next.
func TestMessagesReplaceEachOther(t *testing.T) {
	ours, theirs := net.Pipe() // without buffers
	accepted := make(chan *webpage.PushStream)
	go func() {
		stream, err := webpage.AcceptStream(pipeHijacker{httptest.NewRecorder(), ours}, webpage.EventMessage("status", []byte("first")))
		expect.NoError(t, err)
		accepted <- stream
	}()
	lines := bufio.NewScanner(theirs)
	read := func() string {
		t.Helper()
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return data
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return ""
	}
	if got := read(); got != "first" {
		t.Fatalf("the stream begins with %q", got)
	}
	stream := <-accepted
	left := make(chan struct{})
	stream.Serve(t.Context(), func() { close(left) })
	for range 100 {
		stream.Send(webpage.EventMessage("status", []byte("old")))
	}
	stream.Send(webpage.EventMessage("status", []byte("newest")))
	if got := read(); got == "old" { // its write had begun
		if got = read(); got != "newest" {
			t.Errorf("the second message is %q, want the newest", got)
		}
	}
	expect.OK(t, theirs.Close())
	<-left
}

// deadlineRecorder is a response over HTTP/2, which has a deadline instead of a connection.
type deadlineRecorder struct {
	*httptest.ResponseRecorder

	deadline time.Time // zero without one
	bounded  bool      // each write had a deadline
}

func (r *deadlineRecorder) SetWriteDeadline(at time.Time) error {
	r.deadline = at
	return nil
}

func (r *deadlineRecorder) Write(p []byte) (int, error) {
	r.bounded = r.bounded && !r.deadline.IsZero()
	return r.ResponseRecorder.Write(p)
}

// HTTP/2 ends a stream when its write deadline passes, even if no write is in progress.
func TestQuietStreamHasNoDeadline(t *testing.T) {
	w := &deadlineRecorder{ResponseRecorder: httptest.NewRecorder(), bounded: true}
	stream, err := webpage.AcceptStream(w, webpage.EventMessage("status", []byte("first")))
	expect.OK(t, err)
	if !w.bounded || !w.deadline.IsZero() {
		t.Errorf("the write was bounded: %t; after it the deadline is %v", w.bounded, w.deadline)
	}
	stream.End()
}

// An HTTP/1.0 client, such as an older proxy, gets an answer that ends with the connection.
func TestOldClient(t *testing.T) {
	s := newService(t)
	s.Start()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	expect.OK(t, err)
	expect.Success(t)(io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n"))
	(<-s.streams).End()
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasSuffix(string(answer), "\r\n\r\nevent: status\ndata: first\n\n") || strings.Contains(string(answer), "chunked") {
		t.Errorf("answered %v: %s", err, answer)
	}
	<-s.left
}

// TestSend sends a page and a file to browsers that take gzip and to others.
func TestSend(t *testing.T) {
	t.Parallel()
	long, short := bytes.Repeat([]byte("word "), 100), []byte("word")
	for accepted, gzipped := range map[string]bool{
		"": false, "br": false, "identity": false, "gzip;q=0": false, "gzip; q=0.000": false, "gzip;Q=0": false, "gzip ; q = 0": false, "gzip;q=0;x=1": false, "gzip;x=1;q=0": false, "br;q=0, gzip;Q=0.001": true, "gzip": true, "br, gzip": true, "GZIP;q=0.5": true,
	} {
		for _, body := range [][]byte{long, short} {
			for name, send := range map[string]func(w http.ResponseWriter, r *http.Request) error{
				"page": func(w http.ResponseWriter, r *http.Request) error {
					return webpage.SendHTML(w, r, http.StatusOK, body)
				},
				"file": func(w http.ResponseWriter, r *http.Request) error {
					return webpage.NewFile("/f", "a.css", body).Send(w, r, webpage.Forever)
				},
			} {
				w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
				r.Header.Set("Accept-Encoding", accepted)
				expect.OK(t, send(w, r))
				want := ""
				if gzipped && len(body) == len(long) {
					want = "gzip"
				}
				if got := w.Header().Get("Content-Encoding"); got != want || w.Header().Get("Vary") != "Accept-Encoding" {
					t.Errorf("%s for %q: Content-Encoding %q, want %q; Vary %q", name, accepted, got, want, w.Header().Get("Vary"))
				}
				if got := read(t, w, want); got != string(body) {
					t.Errorf("%s for %q: %q", name, accepted, got)
				}
			}
		}
	}
}

func read(t *testing.T, w *httptest.ResponseRecorder, encoding string) string {
	t.Helper()
	var from io.Reader = w.Body
	if encoding == "gzip" {
		unpacked, err := gzip.NewReader(w.Body)
		expect.OK(t, err)
		from = unpacked
	}
	text, err := io.ReadAll(from)
	expect.OK(t, err)
	return string(text)
}

// TestPaths wants different paths for different contents.
func TestPaths(t *testing.T) {
	t.Parallel()
	a, b := webpage.NewFile("/f", "a.css", []byte("1")).Path, webpage.NewFile("/f", "a.css", []byte("2")).Path
	if a == b || !strings.HasPrefix(a, "/f/") || !strings.HasSuffix(a, "/a.css") {
		t.Errorf("the paths are %s and %s", a, b)
	}
}
