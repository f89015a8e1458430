// Package access holds the rules of access to the API: keys, their scopes, and the principal on whose behalf a request
// acts. It owns the tables of keys, people's sessions, merchants with their addresses and quotas, the audit log and the
// last requests.
//
// A request is never delayed by the list of last requests: it is added to a bounded queue in memory, which one worker
// writes to the database in batches. Entries beyond the bounds are dropped and counted.
package access
