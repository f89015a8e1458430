package server

import "sync/atomic"

// gate says whether the service may send anything out. Everything that leaves the service, except reads from nodes,
// asks it before it is sent: webhooks, mail, transactions and refunds on offer. Once closed it stays so.
type gate struct{ reason atomic.Pointer[string] }

// close closes the gate for a reason, unless it is closed already.
func (g *gate) close(reason string) { g.reason.CompareAndSwap(nil, &reason) }

// Closed returns why nothing is sent out, or "" while the gate is open.
func (g *gate) Closed() string {
	if reason := g.reason.Load(); reason != nil {
		return *reason
	}
	return ""
}
