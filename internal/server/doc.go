// Package server builds and runs the service: the database, the indexers, the transaction managers, the webhook worker,
// the API, the checkout and the health checks. It stops them in order.
//
// # Replicas
//
// Share divides work among the replicas of a service. Each piece of work is done by one replica, the pieces are divided
// about evenly, and others take over the work of a dead replica within seconds.
//
// It avoids that work is done twice, but does not exclude it: for a moment, two replicas may do the same piece. Work
// that must be done only once needs a check in its own transaction.
package server
