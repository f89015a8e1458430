// Command sim runs the whole service in a simulated world, and judges what it does.
//
//	go run ./internal/test/sim -seed 7                  one run
//	go run ./internal/test/sim -seed 7 -trace run.log   with a log of the world and the service, line by line
//	go run ./internal/test/sim -seed 7 -without 2,5     without two of its faults
//	go run ./internal/test/sim -seeds 1..300            many, in -workers processes
//	go run ./internal/test/sim -postgres -seeds 1..50   with replicas on PostgreSQL
//	go run ./internal/test/sim -for 10m                 new seeds, as many as fit
//	make sim SIMFLAGS='-seeds 1..5000'                  the same with flags
//
// Everything in a run is drawn from its seed: the chains with their finality and reorgs, the nodes with their limits,
// the merchants, the payers, when the operator stops or kills the service, and the faults. A failing run prints its
// seed, the first contradiction, the faults that hit a request, and which of these it needs to fail.
//
// # The world
//
// A run is a bubble of package testing/synctest: time passes only while every goroutine waits, so a year costs as much
// as what happens in it. The service is server.Run with a server.Config, as serve makes it, on a SQLite database, or
// with -postgres in one to three replicas on a PostgreSQL server (postgres.go), which loses connections and shows the
// world's time. A client asks the replicas in turn. SQLite's disk (package simdisk) is full or slow for a while, fails
// to sync, and loses what was not synced when power is lost. The operator (operator.go) stops the service, and kills it
// at a drawn time, write or request. The clock of its machine (machineclock.go) is set by seconds or hours, while it
// runs and between two runs. In half of the worlds on SQLite, later runs have other configurations: how often chains
// are read, sweeps, nodes, quorum, operator key with registry, gasless payments and the second token change, and one of
// several chains may be left out. Restarts take the three steps to replace the master key, and a few replace the
// operator's. In a quarter of the worlds on SQLite, a backup (restore.go) is made while the service runs, and restored
// at the next restart: the operator recovers it, keeps the keys that are in use, and imports the merchants' copies of
// invoices. The connections lead to an in-memory network (net.go). A chain (chain.go) runs the real contracts in
// go-ethereum's virtual machine, without consensus; nodes (node.go, rpc.go) serve it over JSON-RPC. A reorg often
// replaces the newest payments, of which a drawn part is mined again, later or never.
//
// Merchants and payers (merchants.go, orders.go, payers.go) use the REST interface and act on its answers: they create
// invoices with and without an idempotency key, repeat what was not answered, and pay as asked, late, twice, in parts,
// in another token or not at all, by a transfer of the shown amount, a tagged transfer, the registry, a deposit address
// or an authorization that the service sends. Merchants receive webhooks, check each signature, rotate secrets and
// keys, ask for redelivery, void what they see paid, and refund; a refund that is offered again is sent again. Some
// payers send their authorization themselves, too; some are a contract account that burns gas once its signature was
// checked. Two people of a merchant (inbox.go) decide about the same payment, one after the other or at the same time:
// they attribute, refund, send back or dismiss it, or its payer claims it on the page about it, with a good signature,
// a bad one or none. In a quarter of the worlds a hook (screening.go), often silent or wrong, screens payments. Some
// payers ask for a receipt, which goes to a mail server (mail.go) that fails, too. A merchant
// has two accounts (addresses.go), and changes the list of those that are allowed, which in half of the worlds is in
// force after 20 seconds. A merchant's account pays invoices of another one. Strangers send what pays nothing, and
// sweep deposits. Now and then nodes return the logs of a transfer but not its transaction.
//
// A fault (fault.go) is drawn and not chosen from a list of cases: it has a target, a time, a chance, a mask of
// methods, and any combination of effects: slow, lost before or after it took effect, doubled, another status or
// body, an answer of the past, a state of the past, an answer with parts left out, blocks with another time, or a branch
// with payments that nobody made. Only one node of a chain is dishonest in the last three ways, and only if two nodes are
// compared; or it only leaves out logs, and the service compares logs. A node may be some blocks behind for a while, also
// during a recovery, or name a head far ahead once. The dishonest node, or all nodes without comparison, may not return the
// transaction of a refund for up to two minutes.
//
// # The judges
//
// The judges (judge.go, ledger.go, inbox.go, addresses.go, resources.go, writer.go) read no table. They know the
// canonical blocks that are final in the end, and what the service has answered. When all faults have stopped and the
// last invoice has expired, the service has progressBound to be right:
//
//   - An acknowledged invoice exists, with its terms, and a key has made one.
//   - It is paid if and only if transfers that identify it, mined in time, less what was refunded until then, add up
//     to its amount; its amountPaid is the sum of its transfers. No payment that was shown covers a void one. Where
//     the rules leave the attribution open (an amount in a block that a reorg moved below the invoice's creation),
//     both outcomes are right.
//   - A confirmed payment is a transfer on the chain, and each transfer pays once.
//   - Each event that is due exists once, and a reader that followed the log during the run has read the same
//     events in the same order.
//   - What was refunded is the sum of the prepared refunds that were sent, perhaps with what clerks gave back, and
//     none is offered after it was sent.
//   - An authorization is paid if and only if its transfer is on the chain, and not if the invoice was made void.
//   - After the faults, the service carries out one more authorization on each chain to which it writes, unless small
//     limits, a clock that was set by minutes or the list of addresses may prevent it. No authorization costs the
//     operator more gas than its bound.
//   - In the end, goroutines, connections and the size of a SQLite database are within bounds, and what the operator's
//     account paid is within its limits, which are small on some chains.
//   - Of two decisions about a payment that exclude each other, one fails. A claim counts only if the payer has signed
//     it, and then does what the page promised.
//   - A screened payment is confirmed only if the hook has accepted it, gave no answer in the mode open, or the operator
//     has decided. One that was rejected, or stays in quarantine, counts for no invoice.
//   - A service does not run on a backup. Once that is recovered, what docs/recovery.md calls lost may be missing: what
//     people decided, which they do again, authorizations, amounts of remainders, and invoices whose copy proves nothing.
//     Payments and refunds of the latter may count otherwise for other invoices, since their accounts are unknown.
//   - A receipt comes if it was promised and the mail server has refused neither it nor its address, only to the payer
//     who asked for it, and once unless the service does not know that it was taken.
//   - Each commitment is opened and closed at most once.
//   - An address that is certainly allowed is not refused, and no invoice settles to one that certainly is not.
//   - A key opens nothing a second after its revocation was acknowledged, and no session that it began goes on.
//   - Each event reached its merchant, with a valid signature by the service's clock, the body of the log and always
//     the same delivery id.
//
// # What a seed does not decide
//
// A worker has one processor (GOMAXPROCS=1), the world draws from a separate stream for each actor, and whether a fault
// hits a request depends on how many requests it has met before. What remains: the order in which the Go scheduler runs
// goroutines that are ready at the same simulated time, also after a system call or a preemption; the order of maps and
// of select; how long a statement of PostgreSQL takes; the jitter that the service draws from math/rand/v2; the random
// bytes of TLS and of package crypto. So a replay takes a slightly different course, in which most failures appear
// again.
package main
