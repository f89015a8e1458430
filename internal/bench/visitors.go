package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
)

// visitors is the input of the process that opens checkout pages. It has a process of its own,
// so that the connections of one process are half of those of the measurement, and that it
// shares no scheduler with the requests whose latency is measured.
type visitors struct {
	Address string // of the service
}

// visits is what the process prints at its end.
type visits struct {
	Events int64 // that arrived
	Ended  int64 // streams that ended by themselves
}

// pageVisitors is a running process of visitors.
type pageVisitors struct{ *process }

// openPages opens the pages of invoices, and returns when each has its first event.
func openPages(ctx context.Context, address string, ids []string) (*pageVisitors, error) {
	p, _, err := startProcess(ctx, "visitors", visitors{address})
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(p.stdin, "%s\n\n", strings.Join(ids, "\n")); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	if _, err := p.lines.ReadString('\n'); err != nil {
		return nil, errors.Join(fmt.Errorf("not all pages were opened: %w", err), p.stop())
	}
	return &pageVisitors{p}, nil
}

// finish closes the pages.
func (p *pageVisitors) finish() (v visits, err error) {
	err = p.stdin.Close()
	line, err2 := p.lines.ReadBytes('\n')
	if err := errors.Join(err, err2, p.cmd.Wait()); err != nil {
		return visits{}, err
	}
	if err := json.Unmarshal(line, &v); err != nil {
		return visits{}, err
	}
	if v.Ended > 0 {
		err = fmt.Errorf("%d streams ended by themselves", v.Ended)
	}
	return v, err
}

// serveVisitors opens the pages of the invoices on its standard input, a line for each up to
// an empty one, and closes them when the input ends.
func serveVisitors(ctx context.Context, text string) error {
	var v visitors
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return err
	}
	fmt.Println("ready")
	input := bufio.NewReader(os.Stdin)
	var ids []string
	for {
		line, err := input.ReadString('\n')
		if err != nil {
			return fmt.Errorf("read the invoices: %w", err)
		}
		if line == "\n" {
			break
		}
		ids = append(ids, strings.TrimSpace(line))
	}
	o := openStreams{address: v.Address}
	if err := inParallel(ctx, ids, o.open); err != nil {
		return err
	}
	fmt.Println("open")
	_, err := input.ReadByte() // its end is what is waited for
	result := visits{Events: o.events.Load(), Ended: o.ended.Load()}
	o.close()
	if encoded := json.NewEncoder(os.Stdout).Encode(result); encoded != nil {
		return errors.Join(err, encoded)
	}
	return nil
}

// openStreams are the streams of the pages.
type openStreams struct {
	address       string
	events, ended atomic.Int64

	mu    sync.Mutex
	conns []net.Conn
}

// open opens a stream and waits for its first event.
func (o *openStreams) open(ctx context.Context, id string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", o.address)
	if err != nil {
		return err
	}
	o.mu.Lock()
	o.conns = append(o.conns, conn)
	o.mu.Unlock()
	if _, err := fmt.Fprintf(conn, "GET /checkout/%s/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n", id); err != nil {
		return err
	}
	lines := bufio.NewReaderSize(conn, 512)
	if err := o.next(lines); err != nil {
		return fmt.Errorf("open the page of %s: %w", id, err)
	}
	go func() {
		for err == nil {
			err = o.next(lines)
		}
		o.ended.Add(1)
	}()
	return nil
}

// next reads up to the end of an event.
func (o *openStreams) next(lines *bufio.Reader) error {
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		if strings.HasPrefix(string(line), "data: ") {
			o.events.Add(1)
			return nil
		}
	}
}

func (o *openStreams) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, conn := range o.conns {
		_ = conn.Close() // nothing is lost with it
	}
}
