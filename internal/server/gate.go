package server

import "sync/atomic"

// gate decides whether the service may send anything out. Webhooks, mail, transactions and refunds ask
// it before they are sent or offered; reads from nodes do not. Once closed it stays closed.
type gate struct{ reason atomic.Pointer[string] }

// close closes the gate for a reason, unless it is closed already.
func (g *gate) close(reason string) { g.reason.CompareAndSwap(nil, &reason) }

// Closed returns why the gate is closed, or "" while it is open.
func (g *gate) Closed() string {
	if reason := g.reason.Load(); reason != nil {
		return *reason
	}
	return ""
}
