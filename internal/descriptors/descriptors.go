// Package descriptors divides the file descriptors that the system grants this
// process among the parts that open connections, so that no part can take
// another's.
package descriptors

import (
	"errors"
	"fmt"
	"syscall"
)

// What is set aside before the rest is divided.
const (
	// files is for the log, listening sockets, the runtime's own, certificates
	// and lookups of names.
	files = 48
	// database covers the connections of store to either database.
	database = 32
	// perNode is how many connections the client of one RPC node may have.
	perNode = 4
)

// Most that a part is given, however many there are.
const (
	mostAccepted = 16_384
	mostWebhooks = 4096
	mostIdle     = 512
)

// Minimum is how many descriptors the process must be granted at least, without
// RPC nodes.
const Minimum = 256

// Budget is how many descriptors each part may use.
type Budget struct {
	Limit    int // granted to the process
	Accepted int // connections of clients, all listeners together
	// Webhooks is how many connections to webhook endpoints may be open, in use
	// or idle. IdleWebhooks of them may be idle.
	Webhooks, IdleWebhooks int
}

// New returns the budget of a process that was granted limit descriptors and
// talks to so many RPC nodes. It fails when there are too few to work with.
//
// Of what is left after the database, the nodes and files, clients are given
// half, and webhooks three quarters of the other half: the last eighth is for
// what an exchange needs beyond its connection, such as a lookup or a second
// attempt to connect by the other family of addresses.
func New(limit, nodes int) (Budget, error) {
	reserved := files + database + perNode*nodes
	if left := Minimum - files - database; limit-reserved < left {
		return Budget{}, fmt.Errorf("the process may open %d files, expected at least %d for %d RPC nodes; raise the limit (ulimit -n, LimitNOFILE)",
			limit, reserved+left, nodes)
	}
	left := limit - reserved
	b := Budget{Limit: limit, Accepted: min(left/2, mostAccepted), Webhooks: min(left/8*3, mostWebhooks)}
	b.IdleWebhooks = min(b.Webhooks/4, mostIdle)
	return b, nil
}

// IsShortage reports whether an error says that this process or this machine
// has run out of something: descriptors, memory or buffers of the network.
// Nobody at the other end of a connection can cause it.
func IsShortage(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && isShortage(errno)
}
