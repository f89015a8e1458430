// Package access holds the rules of access to the API: keys, their scopes, and the principal on whose behalf a request
// acts. It owns the tables of keys, people's sessions, merchants with their addresses and quotas, the audit log and the
// last requests.
//
// A request is never delayed by the list of last requests: it is added to a bounded queue in memory, which one worker
// writes to the database in batches. Entries beyond the bounds are dropped and counted.
//
// # Keys
//
// This package issues the keys of the API and authenticates callers by them.
//
// # Merchants
//
// MerchantManager holds the use cases of merchants: merchants in the service's configuration, which it only reads, and
// merchants that the operator creates. Each change is one transaction with its audit entry.
//
// # People
//
// SessionManager signs people in at the dashboard: by their key, or by a link that a key made for them.
//
// # Secrets
//
// A Keyring generates webhook secrets, and seals them for storage under a master key that is not in the database.
//
// Sealing is AES-256-GCM (NIST SP 800-38D) with a random nonce. The merchant and the version of a secret are the
// associated data, so a sealed secret that is moved to another row cannot be opened.
package access
