// Package indexer reads a chain's blocks and records, in the ledger, which transfers touch settlement addresses, which
// blocks were replaced and which are final.
//
// A Tracker and the judges decide; an Indexer acts. Tracker and judges are pure. The tracker takes the headers that a
// node calls canonical and reports whether the chain grows, forked, or violated its finality. The judges take the
// answers of several nodes and decide which are right. The indexer feeds both, reads the logs of new blocks and writes
// to the Ledger. The Ledger holds all of its state: after an error it starts over from the ledger's cursor.
//
// A sync follows the head with one node, block by block. Far behind the finalized height, a stream reads ranges from
// all nodes at once. A stream also back-fills a gap of older blocks while the head is followed.
//
// Answers are verified before they count. A transfer is taken from the receipt of its transaction, in a block of the
// node's canonical chain. Before the transfer becomes final the receipt is read again, unless its block was final when
// it was read, and other nodes are asked for the block at the finalized height. With quorum: 2 they are asked for all
// transfers up to it. A node that contradicts itself or the others is quarantined and the block is read from another
// node. While it is unknown which node is wrong, no block becomes final.
//
// Near the head, a block's logs are compared with its receipts or with another node's logs. If the only node leaves a
// log out of both, the fault cannot be detected unless the block's bloom filter reveals it. quorum: 2 is for that case.
// If a transaction is found not to be recorded, its block is read again.
package indexer
