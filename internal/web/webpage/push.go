package webpage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// WriteTimeout is how long a client may take to read a message.
const WriteTimeout = 10 * time.Second

// MediaType is the media type of a stream.
const MediaType = "text/event-stream"

// EventMessage returns an event of a stream. data is one line.
func EventMessage(event string, data []byte) []byte {
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", event, data)
}

// PushStream is the stream of one client. Each message replaces those before it: a client that
// reads slowly gets the newest one. It is safe for concurrent use.
//
// Invariant: writing is set while a goroutine writes to the client, and done is closed once
// ended is set and writing is not.
type PushStream struct {
	conn     net.Conn            // nil unless the connection was taken from net/http
	response http.ResponseWriter // nil if it was
	done     chan struct{}       // nil if it was

	mu      sync.Mutex
	next    []byte // to be written after the message in flight
	writing bool
	ended   bool
}

// AcceptStream answers a request with a stream that begins with a message. It sends the headers that the
// response has so far. The caller calls Serve.
func AcceptStream(w http.ResponseWriter, first []byte) (*PushStream, error) {
	header, control := w.Header(), http.NewResponseController(w)
	header.Set("Content-Type", MediaType)
	header.Set("X-Accel-Buffering", "no") // proxies must not collect messages
	conn, _, err := control.Hijack()
	switch {
	case errors.Is(err, http.ErrNotSupported): // HTTP/2
		s := &PushStream{response: w, done: make(chan struct{})}
		if err := s.write(first); err != nil {
			return nil, err
		}
		return s, nil
	case err != nil:
		return nil, fmt.Errorf("take the connection: %w", err)
	}
	s := &PushStream{conn: conn}
	header.Set("Connection", "close")
	var head bytes.Buffer
	head.WriteString("HTTP/1.1 200 OK\r\n")
	_ = header.Write(&head) // a buffer takes everything
	head.WriteString("\r\n")
	head.Write(first)
	if err := s.write(head.Bytes()); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return s, nil
}

// write writes a message to the client.
func (s *PushStream) write(message []byte) error {
	if s.conn != nil {
		return writeConn(s.conn, message)
	}
	return writeResponse(s.response, message)
}

func writeConn(conn net.Conn, message []byte) error {
	if err := conn.SetWriteDeadline(time.Now().Add(WriteTimeout)); err != nil {
		return err
	}
	_, err := conn.Write(message)
	return err
}

// writeResponse writes to a response before its handler has returned. It clears the deadline
// afterwards, because HTTP/2 ends a stream at its deadline even if no write is in progress.
func writeResponse(w http.ResponseWriter, message []byte) error {
	control := http.NewResponseController(w)
	if err := setDeadline(control, time.Now().Add(WriteTimeout)); err != nil {
		return err
	}
	if _, err := w.Write(message); err != nil {
		return err
	}
	if err := control.Flush(); err != nil {
		return err
	}
	return setDeadline(control, time.Time{})
}

func setDeadline(control *http.ResponseController, at time.Time) error {
	err := control.SetWriteDeadline(at)
	if errors.Is(err, http.ErrNotSupported) { // a recorder in tests
		return nil
	}
	return err
}

// Serve calls left once when the stream has ended: the client has left or does not read, or
// End was called, or ctx has ended. It returns at once if the connection was taken from
// net/http. Otherwise it returns when the stream has ended, and ctx must end with the connection.
func (s *PushStream) Serve(ctx context.Context, left func()) {
	if s.conn == nil {
		stop := context.AfterFunc(ctx, s.End)
		<-s.done
		stop()
		left()
		return
	}
	go func() {
		var one [1]byte
		_, _ = s.conn.Read(one[:]) // clients do not send: it returns when they leave
		s.End()
		left()
	}()
}

// Send sends a message to the client, and returns immediately. It replaces a message that was not sent yet.
func (s *PushStream) Send(message []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.next = message
	if !s.writing {
		s.writing = true
		go s.flush()
	}
}

// flush writes messages until no message waits.
func (s *PushStream) flush() {
	for {
		s.mu.Lock()
		message := s.next
		if s.next = nil; message == nil || s.ended {
			s.writing = false
			if s.ended {
				s.finish()
			}
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		if s.write(message) != nil {
			s.End()
		}
	}
}

// End ends the stream.
func (s *PushStream) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.ended = true
	if s.conn != nil {
		_ = s.conn.Close() // it is closed in any case
	}
	if !s.writing {
		s.finish()
	}
}

// finish lets Serve return. The caller holds mu.
func (s *PushStream) finish() {
	if s.done != nil {
		close(s.done)
	}
}
