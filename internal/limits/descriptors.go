package limits

import (
	"errors"
	"fmt"
	"syscall"
)

// Descriptors that are reserved before the rest is divided.
const (
	// files are for the log, listeners, the runtime, certificates and DNS lookups.
	files = 48
	// database are for the connections of the store.
	database = 32
	// perNode are for the connections to one RPC node.
	perNode = 4
)

// Upper limits of the parts.
const (
	maxAccepted = 24_576
	maxWebhooks = 4096
	maxIdle     = 512
)

// Minimum is the lowest limit that suffices without RPC nodes.
const Minimum = 256

// Budget holds the limit of each part.
type Budget struct {
	Limit    int // of the process
	Accepted int // connections of HTTP clients
	// Webhooks is how many connections to webhook endpoints may be open, and
	// IdleWebhooks how many of them may be idle.
	Webhooks, IdleWebhooks int
}

// NewDescriptors returns the budget of a process with a limit of descriptors and a number of RPC
// nodes. It fails if the limit is too low.
//
// After the reserved descriptors, webhooks get three eighths of the rest, and a third of that number
// is for DNS lookups and parallel dials (Happy Eyeballs) of webhook connections. HTTP clients get the
// remainder.
func NewDescriptors(limit, nodes int) (Budget, error) {
	reserved := files + database + perNode*nodes
	if left := Minimum - files - database; limit-reserved < left {
		return Budget{}, fmt.Errorf("the process may open %d files, expected at least %d for %d RPC nodes; raise the limit (ulimit -n, LimitNOFILE)",
			limit, reserved+left, nodes)
	}
	left := limit - reserved
	b := Budget{Limit: limit, Webhooks: min(left/8*3, maxWebhooks)}
	b.Accepted = min(left-b.Webhooks-b.Webhooks/3, maxAccepted)
	b.IdleWebhooks = min(b.Webhooks/4, maxIdle)
	return b, nil
}

// IsShortage reports whether an error means that this process or machine has run out of descriptors,
// memory or network buffers. A peer cannot cause such an error.
func IsShortage(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && isShortage(errno)
}
