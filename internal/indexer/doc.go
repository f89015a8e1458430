// Package indexer is the indexer: it reads a chain's blocks, and tells the
// ledger which transfers touch settlement addresses, which blocks were
// replaced and which are final.
//
// A Tracker decides, an Indexer does. The tracker is pure: fed with the headers
// that a node calls canonical, it says whether the chain goes on, forked,
// or broke its finality. The indexer feeds it, reads the logs of new blocks and
// writes to the Ledger. It keeps nothing that it cannot read back from there:
// after an error it starts over from the ledger's cursor.
//
// A sync follows the head with one node, block by block. Far behind the
// finalized height, and in a gap of older blocks that is filled beside the head, a
// stream reads ranges from all nodes at once.
//
// What is written is believed no further than it was checked. A transfer is
// taken from the receipt of its transaction, in a block of the node's
// canonical chain. Before it becomes final the receipt is asked for again,
// unless its block was final when it was read, and other nodes are asked
// for the block at the finalized height. With quorum: 2 they are asked for
// everything up to it. A node that is caught with an answer that cannot be
// true is quarantined, and the block read elsewhere; where it cannot be told who
// is wrong, nothing becomes final.
//
// What one node alone leaves out of the logs of a block, where the block's
// bloom filter or another log does not betray it, cannot be known without a
// second one: that is what quorum: 2 is for.
package indexer
