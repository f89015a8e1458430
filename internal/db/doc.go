// Package db is the database engine: it opens SQLite or PostgreSQL, migrates the schema, runs transactions and
// statements, and makes backups. The statements on a table are in the *_sql.go files of the package that owns the
// table. Both databases share one SQL text wherever possible; sqlite.go, postgres.go and the files named after them
// hold the differences.
//
// DB.Update runs a function in one transaction, which is committed as a whole or rolled back. A function that takes a
// Querier runs in a transaction or outside one.
//
// # Group commit
//
// A Batcher lets concurrent calls share one transaction: a group commit. A call waits for a batch to fill only
// while another batch is flushed.
//
// # The clock of schedules
//
// Clock is the time by which work is scheduled: due times, deadlines,
// leases and breakers. It follows a source clock that may be set, but never jumps
// with it: while a process runs, it advances with that process's monotonic clock.
// All replicas share it through the database.
//
// So its time may differ from the source's, permanently after an outage or a jump. Wall converts times that are shown
// to people.
//
// There are three times, and docs/operations.md lists which rule uses which:
//
//   - the machine's clock dates stored and shown rows. It ends things that have such a date and can
//     be repaired: sessions, links, keys.
//   - Now, the schedule's time, measures durations: it begins and ends windows, deadlines, leases
//     and budgets.
//   - Confirmed, a time on the machine's clock, decides what cannot be undone: it deletes old data,
//     and frees reserved values.
package db
