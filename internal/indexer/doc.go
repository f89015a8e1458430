// Package indexer reads a chain's blocks and records, in the ledger, which transfers
// touch settlement addresses, which blocks were replaced and which are final.
//
// A Tracker and the judges decide, an Indexer does. They are pure. The tracker takes
// the headers that a node calls canonical and says whether the chain grows, forked,
// or violated its finality. The judges take the readings of several nodes and say
// which are right. The indexer feeds both, reads the logs of new blocks and writes
// to the Ledger. Its state can be rebuilt from there: after an error it starts over
// from the ledger's cursor.
//
// A sync follows the head with one node, block by block. Far behind the finalized
// height, and in a gap of older blocks that is back-filled while the head is
// followed, a stream reads ranges from all nodes at once.
//
// Answers are verified before they count. A transfer is taken from the receipt of its
// transaction, in a block of the node's canonical chain. Before it becomes final the
// receipt is read again, unless its block was final when it was read, and other nodes
// are asked for the block at the finalized height. With quorum: 2 they are asked for
// everything up to it. A node that contradicts itself or the others is quarantined and
// the block is read from another; while it is unknown which node is wrong, nothing
// becomes final.
//
// Near the head, a block's logs are compared with its receipts or with another node's
// logs. A log that a single node leaves out of both cannot be detected, unless the block's bloom
// filter reveals it. quorum: 2 is for that case. If a transaction is found not to be recorded, its
// block is read again.
package indexer
