// Package chain describes EVM networks (which ones are built in, when a block is final, addresses, commitment ids) and
// calls their nodes over JSON-RPC.
//
// A Client calls one URL. A Pool holds the nodes of a chain, each a client with its health: a node that fails is in
// backoff, one that contradicts itself or the others is quarantined, and one of another chain is misconfigured. A
// Pool's calls fail over from one node to the next; a Caller calls one node.
package chain
