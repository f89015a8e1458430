package admin

import "github.com/quittance/quittance/internal/chain"

// Check is a method of verifying the answers of a chain's nodes.
type Check struct {
	Check string `json:"check"`
	State string `json:"state"` // on, off, partial or unknown for bloom; receipts, node, quorum, none or off for logs
}

// Names of checks.
const (
	// CheckReceipts: a payment's receipt must agree with the logs that name it.
	CheckReceipts = "receipts"
	// CheckBloom: an empty answer for logs must agree with the block's bloom
	// filter.
	CheckBloom = "bloom"
	// CheckLogs: a block's logs are compared with its receipts, or with another node's
	// logs, when it is first read.
	CheckLogs = "logs"
	// CheckVote: other nodes must know the block that is about to become final.
	CheckVote = "witness"
	// CheckQuorum: two nodes must report the same payment.
	CheckQuorum = "agree"
)

// States of CheckLogs.
const (
	LogsReceipts = "receipts" // compared with the block's receipts
	LogsNode     = "node"     // compared with another node's logs
	LogsQuorum   = "quorum"   // two nodes must report the same payments
	LogsNone     = "none"     // the node does not return receipts of blocks, and no other state applies
	LogsOff      = "off"      // by the configuration
)

// LogsState returns the state of CheckLogs. by is how blocks can be compared.
func LogsState(c chain.Chain, by string) string {
	switch {
	case c.Quorum > 1:
		return LogsQuorum
	case !c.CompareLogs:
		return LogsOff
	}
	return by
}

// Checks returns the state of each check of a chain. blooms is the state of the bloom check, and by is
// how the logs of blocks can be compared.
func Checks(c chain.Chain, blooms, by string) []Check {
	state := func(on bool) string {
		if on {
			return "on"
		}
		return "off"
	}
	return []Check{
		{CheckReceipts, "on"},
		{CheckBloom, blooms},
		{CheckLogs, LogsState(c, by)},
		{CheckVote, state(len(c.RPC) > 1)},
		{CheckQuorum, state(c.Quorum > 1)},
	}
}
