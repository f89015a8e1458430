package chaintest

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Fault is a fault of a node. Faults that falsify the content of answers are in byzantine.go.
type Fault interface {
	// wrapCalls returns how calls are answered under the fault.
	wrapCalls(p *Proxy, ask callHandler) callHandler
	// wrapResponse returns how the answers are sent.
	wrapResponse(p *Proxy, deliver responder) responder
}

// transportFault is part of a fault that changes how answers are sent. contentFault is part of a fault that changes
// their content and sends them correctly.
type (
	transportFault struct{}
	contentFault   struct{}
)

func (transportFault) wrapCalls(_ *Proxy, ask callHandler) callHandler  { return ask }
func (contentFault) wrapResponse(_ *Proxy, deliver responder) responder { return deliver }

// Sometimes applies another fault to a percentage of the calls.
type Sometimes struct {
	Percent uint64
	Fault   Fault
}

func (f Sometimes) wrapCalls(p *Proxy, ask callHandler) callHandler {
	spoiled := f.Fault.wrapCalls(p, ask)
	return func(c call) answer {
		if p.happens(f.Percent, c.question()) {
			return spoiled(c)
		}
		return ask(c)
	}
}

func (f Sometimes) wrapResponse(p *Proxy, deliver responder) responder {
	spoiled := f.Fault.wrapResponse(p, deliver)
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

// Only applies another fault to calls of the given methods.
type Only struct {
	Methods []string
	Fault   Fault
}

func (f Only) wrapCalls(p *Proxy, ask callHandler) callHandler {
	spoiled := f.Fault.wrapCalls(p, ask)
	return func(c call) answer {
		if slices.Contains(f.Methods, c.Method) {
			return spoiled(c)
		}
		return ask(c)
	}
}

func (f Only) wrapResponse(p *Proxy, deliver responder) responder {
	spoiled := f.Fault.wrapResponse(p, deliver)
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
	transportFault
	Status     int
	RetryAfter string
}

func (f Refuse) wrapResponse(*Proxy, responder) responder {
	return func(x *exchange) {
		if f.RetryAfter != "" {
			x.w.Header().Set("Retry-After", f.RetryAfter)
		}
		http.Error(x.w, http.StatusText(f.Status), f.Status)
	}
}

// Garbage answers with an HTML page and status 200.
type Garbage struct{ transportFault }

func (Garbage) wrapResponse(*Proxy, responder) responder {
	return func(x *exchange) {
		x.w.Header().Set("Content-Type", "text/html")
		x.w.Write([]byte("<html><title>Be right back</title></html>")) //nolint:errcheck // the client may be gone
	}
}

// Truncate ends the answer in the middle, as if it were complete.
type Truncate struct{ transportFault }

func (Truncate) wrapResponse(_ *Proxy, deliver responder) responder {
	return func(x *exchange) {
		x.body = x.body[:len(x.body)/2]
		deliver(x)
	}
}

// Disconnect closes the connection instead of answering, or in the middle of the answer.
type Disconnect struct {
	transportFault
	Middle bool
}

func (f Disconnect) wrapResponse(_ *Proxy, deliver responder) responder {
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

// Stall does not answer until the client gives up.
type Stall struct{ transportFault }

func (Stall) wrapResponse(*Proxy, responder) responder {
	return func(x *exchange) { <-x.ctx.Done() }
}

// SwitchProtocols answers 101, and then sends no data until the client closes the connection.
type SwitchProtocols struct{ transportFault }

func (SwitchProtocols) wrapResponse(*Proxy, responder) responder {
	return func(x *exchange) {
		conn, _, err := http.NewResponseController(x.w).Hijack()
		if err != nil {
			return // the client is gone
		}
		defer conn.Close() //nolint:errcheck // the test is over in any case
		if _, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"); err == nil {
			io.Copy(io.Discard, conn) //nolint:errcheck // until the client has closed it
		}
	}
}

// Slow waits before each answer.
type Slow struct {
	transportFault
	Wait time.Duration
}

func (f Slow) wrapResponse(_ *Proxy, deliver responder) responder {
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

// PartialBatch leaves out the second half of a batch's answers.
type PartialBatch struct{ transportFault }

func (PartialBatch) wrapResponse(_ *Proxy, deliver responder) responder {
	return func(x *exchange) {
		if n := len(x.calls); x.batch && n > 1 {
			x.body = marshal(x.answers[:n/2])
		}
		deliver(x)
	}
}

// Fail answers calls with a JSON-RPC error.
type Fail struct {
	contentFault
	Code    int
	Message string
}

func (f Fail) wrapCalls(*Proxy, callHandler) callHandler {
	return func(call) answer { return answer{Error: &refusal{f.Code, f.Message}} }
}

// Null answers calls with null, as if the node did not have the object.
type Null struct{ contentFault }

func (Null) wrapCalls(*Proxy, callHandler) callHandler {
	return func(call) answer { return answer{Result: []byte("null")} }
}
