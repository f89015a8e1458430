// Package webhooks posts events to the endpoints of merchants.
//
// The schedule is in the database, so a worker has no permanent state: it leases due deliveries, commits, posts them,
// and records each outcome while it still holds the lease. Any number of workers share one database. The deliveries of
// a killed worker become due again when its leases end. An event without a recorded receipt by then is posted once
// more, with the same delivery id.
//
// In memory a delivery waits in the schedule or is in flight: as part of a lease request, or as an attempt. What a
// worker remembers only saves queries.
//
// An event that this process commits puts its merchant in line at once.
//
// # Rules
//
// The rules are pure functions of the time, randomness and rows that are passed in: what a delivery is, when it is
// retried, which deliveries may be leased and in which order, and when an endpoint's circuit breaker opens.
//
// # Endpoints
//
// A Directory manages the merchants' webhook endpoints and signing secrets, which are configured or set by the
// merchants through the API. Secrets that are set through the API are generated here, shown once, stored sealed, and
// rotated. At any moment of a rotation, a receiver with the old or the new secret can verify events.
//
// # Posting
//
// A Poster posts one signed message to an endpoint of a merchant and evaluates the answer. It refuses addresses that
// merchants must not reach, ends every exchange within its time limit, and leaves secrets and addresses out of its
// results. It does not store results or retry.
//
// # Feed
//
// A Feed passes new events, and new entries of the audit log, to waiting requests. For any number of requests, one
// reader per process reads the logs, and only while a request waits.
package webhooks
