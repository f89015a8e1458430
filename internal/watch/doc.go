// Package watch is the indexer: it reads a chain's blocks, and tells the
// ledger which transfers touch settlement addresses, which blocks were
// replaced and which are final.
//
// A Tracker decides, a Watcher does. The tracker is pure: fed with the headers
// that a node calls canonical, it says whether the chain goes on, forked, or
// broke its finality. The watcher feeds it, reads the logs of new blocks and
// writes to the Ledger. It keeps nothing that it cannot read back from there:
// after an error it starts over from the ledger's cursor.
//
// What is written is believed no further than it was checked. A transfer is
// taken from the receipt of its transaction, in the block whose parent is the
// block before, and before it becomes final the receipt and the canonical
// block at that height are asked for again.
package watch
