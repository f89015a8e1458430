package admin

import "github.com/quittance/quittance/internal/chain"

// Check is one of the ways in which what a chain's nodes tell is checked.
type Check struct {
	Check string `json:"check"`
	State string `json:"state"` // on, off, or partial or unknown for bloom
}

// Names of checks.
const (
	// CheckReceipts: a payment is read from its receipt, which must agree with
	// the logs that named it.
	CheckReceipts = "receipts"
	// CheckBloom: an empty answer for logs is held against the block's bloom
	// filter.
	CheckBloom = "bloom"
	// CheckVote: other nodes are asked for the block that is to become
	// final.
	CheckVote = "witness"
	// CheckQuorum: two nodes must report the same payment.
	CheckQuorum = "agree"
)

// Checks returns which checks are on for a chain, given what is known of its
// nodes' bloom filters.
func Checks(c chain.Chain, blooms string) []Check {
	state := func(on bool) string {
		if on {
			return "on"
		}
		return "off"
	}
	return []Check{
		{CheckReceipts, "on"},
		{CheckBloom, blooms},
		{CheckVote, state(len(c.RPC) > 1)},
		{CheckQuorum, state(c.Quorum > 1)},
	}
}
