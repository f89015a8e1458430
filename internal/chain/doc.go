// Package chain knows the EVM networks: which are built in, when a block is
// final on each, how to write their addresses and compute commitment ids, and
// how to ask their nodes over JSON-RPC.
package chain
