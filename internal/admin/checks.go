package admin

import "github.com/quittance/quittance/internal/chain"

// Check is a method by which the answers of a chain's nodes are verified.
type Check struct {
	Check string `json:"check"`
	State string `json:"state"` // on, off, or partial or unknown for bloom
}

// Names of checks.
const (
	// CheckReceipts: a payment's receipt must agree with the logs that name it.
	CheckReceipts = "receipts"
	// CheckBloom: an empty answer for logs must agree with the block's bloom
	// filter.
	CheckBloom = "bloom"
	// CheckVote: other nodes must know the block that is about to become final.
	CheckVote = "witness"
	// CheckQuorum: two nodes must report the same payment.
	CheckQuorum = "agree"
)

// Checks returns which checks are on for a chain. blooms is the state of the
// bloom check.
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
