package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/quittance/quittance/internal/wait"
)

const (
	// floodConnections is how many connections send bodies without an end, and floodStreams
	// how many each of them sends at a time.
	floodConnections, floodStreams = 100, 240
	// floodTick is how often a part of each body is sent, of floodPart bytes.
	floodTick, floodPart = time.Second, 100
	// floodAgain is how many requests a connection begins again at a tick, after the server
	// has ended others.
	floodAgain = 10
	// floodBodies is how many connections send a slow body each.
	floodBodies = 1000
)

// flood starts floodConnections connections that send bodies without an end.
func (r *attackRun) flood(ctx context.Context, address string) {
	for i := range floodConnections {
		r.ready.Add(1)
		r.group.Go(func() {
			wait.Sleep(ctx, time.Duration(i)*floodTick/floodConnections, nil)
			ready := sync.OnceFunc(r.ready.Done)
			for ctx.Err() == nil {
				err := r.floodOnce(ctx, address, ready)
				ready()
				if err != nil && ctx.Err() == nil {
					r.closed.Add(1)
				}
				wait.Sleep(ctx, floodTick, nil)
			}
		})
	}
}

// floodOnce sends bodies on a connection until the server closes it or ctx ends.
func (r *attackRun) floodOnce(ctx context.Context, address string, ready func()) error {
	conn, err := dialAttack(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the server may have closed it
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	//nolint:gosec // the server is the one of this measurement
	secure := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12})
	if _, err := io.WriteString(secure, http2.ClientPreface); err != nil {
		return err
	}
	r.opened.Add(1)
	c := &floodConnection{frames: http2.NewFramer(secure, secure), header: floodHeader(), open: make(map[uint32]bool), next: 1}
	if err := c.frames.WriteSettings(); err != nil {
		return err
	}
	go c.read()
	tick := time.NewTicker(floodTick)
	defer tick.Stop()
	for most := floodStreams; ; most = floodAgain {
		begun, err := c.begin(most)
		r.streams.Add(int64(begun))
		ready()
		if err == nil {
			err = c.send()
		}
		if err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// floodConnection is a connection over HTTP/2. It writes in one goroutine and reads in another.
type floodConnection struct {
	frames *http2.Framer
	header []byte // of a request
	next   uint32 // stream

	mu   sync.Mutex
	open map[uint32]bool // streams that the server has not ended
}

// begin begins the missing requests, up to a number, and returns how many it has begun.
func (c *floodConnection) begin(most int) (begun int, err error) {
	c.mu.Lock()
	missing := min(floodStreams-len(c.open), most)
	for i := range missing {
		c.open[c.next+2*uint32(i)] = true
	}
	c.mu.Unlock()
	for ; begun < missing; begun++ {
		if err := c.frames.WriteHeaders(http2.HeadersFrameParam{StreamID: c.next, BlockFragment: c.header, EndHeaders: true}); err != nil {
			return begun, err
		}
		c.next += 2
	}
	return begun, nil
}

// send sends a part of each body.
func (c *floodConnection) send() error {
	c.mu.Lock()
	open := slices.Collect(maps.Keys(c.open))
	c.mu.Unlock()
	for _, stream := range open {
		if err := c.frames.WriteData(stream, false, make([]byte, floodPart)); err != nil {
			return err
		}
	}
	return nil
}

// read notes which streams the server ends, until the connection is closed.
func (c *floodConnection) read() {
	for {
		frame, err := c.frames.ReadFrame()
		if err != nil {
			return
		}
		_, reset := frame.(*http2.RSTStreamFrame)
		if h := frame.Header(); reset || h.Flags.Has(http2.FlagDataEndStream) && (h.Type == http2.FrameData || h.Type == http2.FrameHeaders) {
			c.mu.Lock()
			delete(c.open, h.StreamID)
			c.mu.Unlock()
		}
	}
}

// floodHeader returns the header of a request that needs no key, with a body of unknown length. It does not use
// the table of the connection.
func floodHeader() []byte {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	encoder.SetMaxDynamicTableSize(0)
	for _, field := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":authority", "127.0.0.1"}, {":path", "/checkout/inv_x/claim"}} {
		_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1], Sensitive: true}) // a buffer takes all
	}
	return block.Bytes()
}

// holdBodies starts floodBodies connections that each send a slow body, and again when the
// server closes them.
func (r *attackRun) holdBodies(ctx context.Context, address string) {
	for i := range floodBodies {
		r.ready.Add(1)
		r.group.Go(func() {
			ready := sync.OnceFunc(r.ready.Done)
			wait.Sleep(ctx, time.Duration(i)*floodTick/floodBodies, nil)
			tick := time.NewTicker(floodTick)
			defer tick.Stop()
			for ctx.Err() == nil {
				conn, err := dialAttack(ctx, address)
				ready()
				if err != nil {
					<-tick.C
					continue
				}
				r.opened.Add(1)
				_, err = io.WriteString(conn, "POST /api/invoices HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 60000\r\n\r\n")
				if err != nil || !sendSlowly(ctx, conn, tick.C) {
					r.closed.Add(1)
				}
				_ = conn.Close() // the server may have closed it
				select {
				case <-tick.C:
				case <-ctx.Done():
				}
			}
		})
	}
}
