package chaintest

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Fault is a way for a provider to go wrong. Those that spoil what a provider
// says are in lie.go.
type Fault interface {
	// answering returns how calls are answered under the fault.
	answering(p *Proxy, ask asker) asker
	// sending returns how the answers are sent.
	sending(p *Proxy, deliver sender) sender
}

// onTheWay is part of a fault that leaves the answers alone until they are
// sent, inWords of one that spoils them and sends them well.
type (
	onTheWay struct{}
	inWords  struct{}
)

func (onTheWay) answering(_ *Proxy, ask asker) asker    { return ask }
func (inWords) sending(_ *Proxy, deliver sender) sender { return deliver }

// Sometimes is another fault that befalls so many percent of the questions.
type Sometimes struct {
	Percent uint64
	Fault   Fault
}

func (f Sometimes) answering(p *Proxy, ask asker) asker {
	spoiled := f.Fault.answering(p, ask)
	return func(c call) answer {
		if p.happens(f.Percent, c.question()) {
			return spoiled(c)
		}
		return ask(c)
	}
}

func (f Sometimes) sending(p *Proxy, deliver sender) sender {
	spoiled := f.Fault.sending(p, deliver)
	return func(x *exchange) {
		var asked strings.Builder
		for _, c := range x.calls {
			asked.WriteString(c.question())
		}
		if p.happens(f.Percent, "request "+asked.String()) {
			spoiled(x)
			return
		}
		deliver(x)
	}
}

// Only is another fault that befalls the questions that name these methods.
type Only struct {
	Methods []string
	Fault   Fault
}

func (f Only) answering(p *Proxy, ask asker) asker {
	spoiled := f.Fault.answering(p, ask)
	return func(c call) answer {
		if slices.Contains(f.Methods, c.Method) {
			return spoiled(c)
		}
		return ask(c)
	}
}

func (f Only) sending(p *Proxy, deliver sender) sender {
	spoiled := f.Fault.sending(p, deliver)
	return func(x *exchange) {
		if slices.ContainsFunc(x.calls, func(c call) bool { return slices.Contains(f.Methods, c.Method) }) {
			spoiled(x)
			return
		}
		deliver(x)
	}
}

// Refuse answers with an HTTP status such as 429, 413 or 500, and with a
// Retry-After unless that is empty.
type Refuse struct {
	onTheWay
	Status     int
	RetryAfter string
}

func (f Refuse) sending(*Proxy, sender) sender {
	return func(x *exchange) {
		if f.RetryAfter != "" {
			x.w.Header().Set("Retry-After", f.RetryAfter)
		}
		http.Error(x.w, http.StatusText(f.Status), f.Status)
	}
}

// Garbage answers with a page for people, and says that all is well.
type Garbage struct{ onTheWay }

func (Garbage) sending(*Proxy, sender) sender {
	return func(x *exchange) {
		x.w.Header().Set("Content-Type", "text/html")
		x.w.Write([]byte("<html><title>Be right back</title></html>")) //nolint:errcheck // a client that is gone wants no answer
	}
}

// Truncate ends the answer in its middle, as if that was all of it.
type Truncate struct{ onTheWay }

func (Truncate) sending(_ *Proxy, deliver sender) sender {
	return func(x *exchange) {
		x.body = x.body[:len(x.body)/2]
		deliver(x)
	}
}

// Disconnect closes the connection instead of an answer, or in its middle.
type Disconnect struct {
	onTheWay
	Middle bool
}

func (f Disconnect) sending(_ *Proxy, deliver sender) sender {
	return func(x *exchange) {
		if f.Middle {
			x.w.Header().Set("Content-Length", strconv.Itoa(len(x.body)))
			x.body = x.body[:len(x.body)/2]
			deliver(x)
			if err := http.NewResponseController(x.w).Flush(); err != nil {
				return // the client is gone
			}
		}
		panic(http.ErrAbortHandler) // net/http's way to close the connection
	}
}

// Stall answers nothing until the client gives up.
type Stall struct{ onTheWay }

func (Stall) sending(*Proxy, sender) sender {
	return func(x *exchange) { <-x.ctx.Done() }
}

// SwitchProtocols answers 101, and says nothing more until the client closes
// the connection.
type SwitchProtocols struct{ onTheWay }

func (SwitchProtocols) sending(*Proxy, sender) sender {
	return func(x *exchange) {
		conn, _, err := http.NewResponseController(x.w).Hijack()
		if err != nil {
			return // the client is gone
		}
		defer conn.Close() //nolint:errcheck // it is over in any case
		if _, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"); err == nil {
			io.Copy(io.Discard, conn) //nolint:errcheck // until the client has closed it
		}
	}
}

// Slow waits before each answer.
type Slow struct {
	onTheWay
	Wait time.Duration
}

func (f Slow) sending(_ *Proxy, deliver sender) sender {
	return func(x *exchange) {
		timer := time.NewTimer(f.Wait)
		defer timer.Stop()
		select {
		case <-timer.C:
			deliver(x)
		case <-x.ctx.Done():
		}
	}
}

// PartialBatch leaves the later half of a batch's answers out.
type PartialBatch struct{ onTheWay }

func (PartialBatch) sending(_ *Proxy, deliver sender) sender {
	return func(x *exchange) {
		if n := len(x.calls); x.batch && n > 1 {
			x.body = marshal(x.answers[:n/2])
		}
		deliver(x)
	}
}

// Fail answers calls with an error of JSON-RPC.
type Fail struct {
	inWords
	Code    int
	Message string
}

func (f Fail) answering(*Proxy, asker) asker {
	return func(call) answer { return answer{Error: &refusal{f.Code, f.Message}} }
}

// Null answers calls with null: the provider does not have it.
type Null struct{ inWords }

func (Null) answering(*Proxy, asker) asker {
	return func(call) answer { return answer{Result: []byte("null")} }
}
