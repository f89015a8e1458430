// Package admin has the operations of an operator. It reads the state of a service's chains: from the
// service while it runs, otherwise from its database and nodes. It also makes changes in the database,
// which the service picks up.
package admin

import (
	"math"
	"math/big"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// Status is the status of a service's chains. Its JSON is the body of GET /status.
type Status struct {
	// Offline is why the status is not from the service, and is empty if it is. An offline status lacks
	// the workers, and no chain is ready.
	Offline string  `json:"offline,omitempty"`
	Chains  []Chain `json:"chains"`
}

// Chain is the status of one chain. Numbers are block numbers.
type Chain struct {
	ChainKey  string     `json:"chainKey"`
	ChainID   uint64     `json:"chainId"`
	Finality  string     `json:"finality"`
	Quorum    int        `json:"agree"`     // how many nodes must report the same payment
	Ready     bool       `json:"ready"`     // its indexer is running
	Reading   bool       `json:"reading"`   // this replica reads the chain, not another
	Head      uint64     `json:"head"`      // newest block that the nodes reported
	Indexed   uint64     `json:"indexed"`   // newest block whose payments are stored
	Confirmed uint64     `json:"confirmed"` // newest block that is final
	Lag       Lag        `json:"lag"`
	CatchUp   *Progress  `json:"catchUp,omitempty"`  // while the final blocks before the head are read
	Backfill  *Progress  `json:"backfill,omitempty"` // while older blocks are read, or read again
	Halted    string     `json:"halted,omitempty"`   // why its indexer stopped until a person resumes it
	Error     string     `json:"error,omitempty"`    // why the last request to the chain failed
	Providers []Provider `json:"providers"`
	Checks    []Check    `json:"checks"`          // of the nodes' answers
	Audit     *Audit     `json:"audit,omitempty"` // of final blocks; absent before it begins, and from the database
	// Unread is how many transactions are not recorded and wait to be read again, by reason.
	Unread map[ledger.UnreadReason]int `json:"unread,omitempty"`
	// SkewSeconds is how far the service's clock is ahead of the timestamps of new
	// blocks; absent while it is unknown. Skewed is set when it is too far.
	SkewSeconds *int64  `json:"skewSeconds,omitempty"`
	Skewed      bool    `json:"skewed,omitempty"`
	Writer      *Writer `json:"writer,omitempty"` // absent without an operator key
}

// Audit is how far the final blocks of a chain were read a second time, and how they were verified.
type Audit struct {
	Next       uint64 `json:"next"`       // first block that is not audited
	Behind     uint64 `json:"behind"`     // final blocks that are not audited
	Older      uint64 `json:"older"`      // blocks of a back-fill that are not audited
	ByHeader   uint64 `json:"byHeader"`   // blocks with a header that rules out logs of interest
	ByReceipts uint64 `json:"byReceipts"` // blocks that were compared with their receipts
	ByNode     uint64 `json:"byNode"`     // blocks that were compared with another node
	Unverified uint64 `json:"unverified"` // skipped blocks
}

// Lag is how far the indexer is behind the chain's head.
type Lag struct {
	Blocks  uint64 `json:"blocks"`
	Seconds int64  `json:"seconds"` // age of the newest block read; 0 when that is the head
}

// LagOf returns the lag of a chain. indexedTime is the time of its newest indexed block.
func LagOf(head, indexed uint64, indexedTime, now time.Time) Lag {
	if head <= indexed {
		return Lag{}
	}
	return Lag{Blocks: head - indexed, Seconds: max(0, now.Unix()-invoice.UnixSeconds(indexedTime))}
}

// Progress is the progress in a range of blocks, inclusive.
type Progress struct {
	From            uint64  `json:"from"`
	To              uint64  `json:"to"`
	Next            uint64  `json:"next"` // first block that is not read yet
	Percent         float64 `json:"percent"`
	BlocksPerSecond float64 `json:"blocksPerSecond"`       // a recent average
	SecondsLeft     int64   `json:"secondsLeft,omitempty"` // absent when it is unknown
}

// NewProgress returns the progress in a range at the block next. speed is in blocks
// per second.
func NewProgress(from, to, next uint64, speed float64) *Progress {
	p := &Progress{From: from, To: to, Next: next, BlocksPerSecond: rounded(speed)}
	if to >= from {
		p.Percent = rounded(100 * float64(next-from) / float64(to-from+1))
	}
	return p
}

// rounded rounds to two decimals.
func rounded(x float64) float64 { return math.Round(100*x) / 100 }

// Provider is the status of a chain's node.
type Provider struct {
	Provider     string              `json:"provider"` // scheme and host of its URL
	State        chain.State         `json:"state"`
	Health       apitypes.NodeHealth `json:"health"`
	Until        int64               `json:"until,omitempty"`        // Unix seconds: when it is used again
	Reason       string              `json:"reason,omitempty"`       // why it is in that state
	FailingSince int64               `json:"failingSince,omitempty"` // Unix seconds: when it first failed without a success since
	LastError    string              `json:"lastError,omitempty"`    // of its last failure, also if it works since
	LastErrorAt  int64               `json:"lastErrorAt,omitempty"`  // Unix seconds: when that was
	Head         uint64              `json:"head"`
	HeadAt       int64               `json:"headAt,omitempty"` // Unix seconds: when it reported its head
	LatencyMs    float64             `json:"latencyMs"`        // of a request, a moving average in milliseconds
	Calls        uint64              `json:"calls"`
	PerDay       uint64              `json:"callsPerDay,omitempty"` // an estimate, from the last hour; absent in the first minute
	Errors       uint64              `json:"errors"`
	Limits       []NodeLimit         `json:"limits,omitempty"`         // the requests that it refused
	Pace         float64             `json:"callsPerSecond,omitempty"` // upper limit, set after it refused more
	LeadingZeros bool                `json:"leadingZeros,omitempty"`   // it writes numbers with leading zeros
}

// NodeLimit is the size of a kind of request that a node refused.
type NodeLimit struct {
	Kind    chain.Kind `json:"kind"`
	Size    uint64     `json:"size"`    // requested instead; 0 for no limit
	Refused uint64     `json:"refused"` // last size that was refused
	At      int64      `json:"at"`      // Unix seconds: when that was
}

// Providers returns the status of a pool's nodes.
func Providers(p *chain.Pool) []Provider {
	all := []Provider{}
	for _, h := range p.Health() {
		var limits []NodeLimit
		for _, l := range h.Limits {
			limits = append(limits, NodeLimit{l.Kind, l.Size, l.Refused, invoice.UnixSeconds(l.At)})
		}
		all = append(all, Provider{
			Limits: limits, Pace: h.Pace, LeadingZeros: h.LeadingZeros, Health: healthOf(h),
			FailingSince: invoice.UnixSeconds(h.FailingSince), LastError: h.LastError, LastErrorAt: invoice.UnixSeconds(h.LastErrorAt),
			Provider: h.Node, State: h.State, Until: invoice.UnixSeconds(h.Until), Reason: h.Reason, Head: h.Head, HeadAt: invoice.UnixSeconds(h.HeadAt),
			LatencyMs: rounded(h.Latency.Seconds() * 1000), Calls: h.Calls.Total(), PerDay: h.PerDay, Errors: h.Errors,
		})
	}
	return all
}

// healthOf returns whether a node answers.
func healthOf(h chain.Health) apitypes.NodeHealth {
	switch {
	case h.State == chain.StateOK, h.State == chain.StateLagging:
		return apitypes.NodeOK
	case h.State != chain.StateUnknown:
		return apitypes.NodePaused
	case h.FailingSince.IsZero():
		return apitypes.NodeUnused
	}
	return apitypes.NodeFailing
}

// Sweeps are numbers of deposits that are to be swept.
type Sweeps struct {
	Policy   string `json:"policy"`            // when deposits are swept: at-once, above, cheap-gas, daily or never
	Queued   int64  `json:"queued"`            // in no transaction
	InFlight int64  `json:"inFlight"`          // in a transaction that is not final
	Failing  int64  `json:"failing"`           // of queued: they wait after a transaction that did not sweep them
	Waiting  string `json:"waiting,omitempty"` // queued again, after a transaction failed to sweep them
}

// Writer is the status of a chain's transaction manager.
type Writer struct {
	Account   string   `json:"account"`             // the address that pays for the gas
	Working   bool     `json:"working"`             // this process writes, not another
	Due       int64    `json:"due"`                 // waiting intents
	Elsewhere int64    `json:"elsewhere,omitempty"` // waiting intents for other registries than the configured one
	InFlight  int      `json:"inFlight"`            // sent transactions that are not mined
	NextNonce uint64   `json:"nextNonce"`           // next nonce of the account, as its nodes last reported
	Balance   *big.Int `json:"balance,omitempty"`   // of the account, in wei, at the last read
	Needed    *big.Int `json:"needed,omitempty"`    // highest cost of the next transaction, in wei
	Spent     *big.Int `json:"spent,omitempty"`     // cost of the last 24 hours' transactions, in wei, at the last count
	Budget    *big.Int `json:"budget,omitempty"`    // limit for any 24 hours' transactions, in wei
	Sweeps    *Sweeps  `json:"sweeps,omitempty"`    // of deposits; absent without a deposit factory
	Error     string   `json:"error,omitempty"`     // why no transaction is sent
	Since     int64    `json:"since,omitempty"`     // Unix seconds: when the error began
}
