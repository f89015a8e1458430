// Package chain describes EVM networks (which ones are built in, when a block is final, addresses, commitment ids) and
// calls their nodes over JSON-RPC.
//
// A Client calls one URL. A Pool holds the nodes of a chain, each a client with its health: a node that fails is in
// backoff, one that contradicts itself or the others is quarantined, and one of another chain is misconfigured. A
// Pool's calls fail over from one node to the next; a Caller calls one node.
//
// # Comparison of configurations
//
// CompareConfigured compares the configuration with the earlier ones in the database. Its rules are pure: they use no
// database and no network.
//
// # Transactions that payers name
//
// An Inspector reports what a transaction did that a payer names: which of the configured chains has it, whether it
// succeeded, and its transfers. The reports only explain; only the indexer records payments.
//
// # Untrusted peers
//
// The package bounds HTTP exchanges with untrusted peers: RPC nodes and webhook endpoints.
package chain
