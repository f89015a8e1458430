// Package admin has the operations of an operator: it reads the state of a
// service's chains, from the service while it runs and from its database and
// nodes otherwise, and makes changes in the database that the service acts on.
package admin

import (
	"math"
	"math/big"
	"time"

	"github.com/quittance/quittance/internal/chain"
)

// Status is how the chains of a service do. Its JSON is the body of GET /status.
type Status struct {
	// Offline says why the service was not asked; empty when it answered.
	// Without it nothing is known of its work, and no chain is ready.
	Offline string  `json:"offline,omitempty"`
	Chains  []Chain `json:"chains"`
}

// Chain is how one chain does. Numbers are of blocks.
type Chain struct {
	ChainKey  string     `json:"chainKey"`
	ChainID   uint64     `json:"chainId"`
	Finality  string     `json:"finality"`
	Quorum    int        `json:"agree"`     // how many nodes must report the same payment
	Ready     bool       `json:"ready"`     // it is read
	Head      uint64     `json:"head"`      // newest block that the nodes reported
	Indexed   uint64     `json:"indexed"`   // newest block whose payments are stored
	Confirmed uint64     `json:"confirmed"` // newest block that is final
	Lag       Lag        `json:"lag"`
	CatchUp   *Progress  `json:"catchUp,omitempty"`  // while the final blocks before the head are read
	Backfill  *Progress  `json:"backfill,omitempty"` // while older blocks are read, or read again
	Halted    string     `json:"halted,omitempty"`   // why it is read no further until somebody resumes it
	Error     string     `json:"error,omitempty"`    // why the last look at the chain failed
	Providers []Provider `json:"providers"`
	Checks    []Check    `json:"checks"` // of what the nodes tell
	// SkewSeconds is how far the clock of the service is ahead of the time of
	// the chain's new blocks; absent while it is unknown. Skewed says that it
	// is too far.
	SkewSeconds *int64  `json:"skewSeconds,omitempty"`
	Skewed      bool    `json:"skewed,omitempty"`
	Writer      *Writer `json:"writer,omitempty"` // absent without an operator key
}

// Lag is how far the reading of a chain is behind its head.
type Lag struct {
	Blocks  uint64 `json:"blocks"`
	Seconds int64  `json:"seconds"` // age of the newest block read; 0 when that is the head
}

// LagOf returns how far a chain is behind that is read up to a block of a time
// (Unix seconds).
func LagOf(head, indexed uint64, indexedTime int64, now time.Time) Lag {
	if head <= indexed {
		return Lag{}
	}
	return Lag{Blocks: head - indexed, Seconds: max(0, now.Unix()-indexedTime)}
}

// Progress is how far a range of blocks is read, both ends of which belong to
// it.
type Progress struct {
	From            uint64  `json:"from"`
	To              uint64  `json:"to"`
	Next            uint64  `json:"next"` // first block that is not read yet
	Percent         float64 `json:"percent"`
	BlocksPerSecond float64 `json:"blocksPerSecond"`       // of late
	SecondsLeft     int64   `json:"secondsLeft,omitempty"` // absent when it cannot be told
}

// NewProgress returns the progress in a range of which the next block is to be
// read, at so many blocks a second.
func NewProgress(from, to, next uint64, speed float64) *Progress {
	p := &Progress{From: from, To: to, Next: next, BlocksPerSecond: rounded(speed)}
	if to >= from {
		p.Percent = rounded(100 * float64(next-from) / float64(to-from+1))
	}
	return p
}

// rounded returns a number with the two decimals that people can use.
func rounded(x float64) float64 { return math.Round(100*x) / 100 }

// Provider is how a chain's node does.
type Provider struct {
	Provider   string      `json:"provider"` // scheme and host of its URL
	State      chain.State `json:"state"`
	Until      int64       `json:"until,omitempty"`  // Unix seconds: when it is asked again
	Reason     string      `json:"reason,omitempty"` // why it is in that state
	Head       uint64      `json:"head"`
	HeadAt     int64       `json:"headAt,omitempty"` // Unix seconds: when it reported its head
	LatencyMs  float64     `json:"latencyMs"`        // of a request, a moving average in milliseconds
	Calls      uint64      `json:"calls"`
	Errors     uint64      `json:"errors"`
	Subscribed bool        `json:"subscribed"` // to its heads
}

// Providers returns how a pool's nodes do.
func Providers(p *chain.Pool) []Provider {
	all := []Provider{}
	for _, h := range p.Health() {
		all = append(all, Provider{
			Provider: h.Node, State: h.State, Until: unix(h.Until), Reason: h.Reason, Head: h.Head, HeadAt: unix(h.HeadAt),
			LatencyMs: rounded(h.Latency.Seconds() * 1000), Calls: h.Calls, Errors: h.Errors, Subscribed: h.Subscribed,
		})
	}
	return all
}

// Writer is how the writer of a chain's registry does.
type Writer struct {
	Account   string   `json:"account"`             // who pays for the gas
	Working   bool     `json:"working"`             // this process writes; otherwise it waits for another to stop
	Due       int64    `json:"due"`                 // intents that wait
	Elsewhere int64    `json:"elsewhere,omitempty"` // intents that wait for another registry than the configured one
	InFlight  int      `json:"inFlight"`            // transactions that are sent and not mined
	NextNonce uint64   `json:"nextNonce"`           // nonces of the account that are used, as its nodes said last
	Balance   *big.Int `json:"balance,omitempty"`   // of the account, in wei, when it was last looked at
	Needed    *big.Int `json:"needed,omitempty"`    // what the next transaction may cost, in wei
	Spent     *big.Int `json:"spent,omitempty"`     // what the transactions of the last 24 hours cost, in wei, when it was last added up
	Budget    *big.Int `json:"budget,omitempty"`    // what those of any 24 hours may cost, in wei
	Error     string   `json:"error,omitempty"`     // why nothing is sent
	Since     int64    `json:"since,omitempty"`     // Unix seconds: when the error came
}

// unix returns a time in Unix seconds, and 0 for none.
func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}
