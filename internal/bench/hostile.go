package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/poster"
)

// hostileExchanges is how many exchanges with a hostile receiver are under way
// at once: as many as a worker has.
const hostileExchanges = 64

// measureHostile measures what malicious receivers cost the worker: the duration of
// an exchange, and memory. It needs no database.
func (b *bench) measureHostile(ctx context.Context, kind string) error {
	if kind != "sqlite" {
		return nil
	}
	// A compressed body, which the sender must not inflate.
	bomb := "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n\x1f\x8b\x08" + strings.Repeat("\x00", 1<<20)
	for _, c := range []struct {
		what, at string
		drip     time.Duration // between two bytes of the text; 0 for as fast as it goes
		text     string
	}{
		{"a byte of the header a second", "longest exchange", time.Second, "HTTP/1.1 200 OK\r\nX-Slow: " + strings.Repeat("x", 60)},
		{"a byte of the body a second", "longest exchange", time.Second, "HTTP/1.1 200 OK\r\n\r\n"},
		{"a body without end", "heap", 0, "HTTP/1.1 200 OK\r\n\r\n"},
		{"a packed body without end", "heap", 0, bomb},
	} {
		longest, grown, err := exchangeWith(ctx, c.text, c.drip)
		if err != nil {
			return fmt.Errorf("%s: %w", c.what, err)
		}
		figure := longest.Round(time.Millisecond).String()
		if c.at == "heap" {
			figure = fmt.Sprintf("%.1f MiB", float64(grown)/(1<<20))
		}
		b.report.row("none", c.what+", "+c.at, figure, "", "", fmt.Sprintf("%d exchanges at once; the longest took %v", hostileExchanges, longest.Round(time.Millisecond)))
	}
	return nil
}

// exchangeWith runs exchanges with a receiver that answers with a text, byte by byte if it
// drips, and then with x without end. It returns the longest duration and the largest growth
// of the heap.
func exchangeWith(ctx context.Context, text string, drip time.Duration) (longest time.Duration, grown uint64, err error) {
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	begin := []byte(text) // shared: the memory of the receivers is in this process, too
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go answerForEver(conn, begin, drip)
		}
	}()
	client := poster.NewClient(poster.ClientConfig{Guard: poster.NewGuard(poster.Loopback())})
	defer client.CloseIdleConnections()
	p := poster.New(poster.Config{Client: client, Now: time.Now})
	to := poster.Endpoint{URL: "http://" + l.Addr().String() + "/", Secret: "whsec_bench"}

	debug.FreeOSMemory()
	before := heap()
	done := make(chan time.Duration, hostileExchanges)
	var group sync.WaitGroup
	for range hostileExchanges {
		group.Go(func() {
			began := time.Now()
			p.Try(ctx, to, poster.Message{ID: "dlv_bench", Event: "invoice.paid", Body: []byte("{}")})
			done <- time.Since(began)
		})
	}
	ended := make(chan struct{})
	go func() { group.Wait(); close(ended) }()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for most := before; ; {
		select {
		case <-ticker.C:
			most = max(most, heap())
			continue
		case <-ended:
		}
		close(done)
		for took := range done {
			longest = max(longest, took)
		}
		return longest, most - before, nil
	}
}

// answerForEver writes until the peer closes the connection.
func answerForEver(conn net.Conn, begin []byte, drip time.Duration) {
	defer conn.Close() //nolint:errcheck // the peer has closed it
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	if drip == 0 {
		for block := begin; ; block = filler {
			if _, err := conn.Write(block); err != nil {
				return
			}
		}
	}
	// An incomplete header drips; after a complete header, the body does.
	if i := bytes.Index(begin, []byte("\r\n\r\n")); i >= 0 {
		if _, err := conn.Write(begin); err != nil {
			return
		}
		begin = filler
	}
	ticker := time.NewTicker(drip)
	defer ticker.Stop()
	for i := range begin {
		if _, err := conn.Write(begin[i : i+1]); err != nil {
			return
		}
		<-ticker.C
	}
}

// filler is the content of an endless body.
var filler = bytes.Repeat([]byte("x"), 64<<10)

// heap returns how many bytes of the heap are in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
