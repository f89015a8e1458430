// Package ledger holds the use cases of Quittance. Each is one database transaction that writes a change together with
// the events that announce it.
//
// The rules themselves are pure functions of package invoice. This package loads their input, applies
// them and stores the result.
//
// # Payment links
//
// A PaymentLinkManager holds the use cases of payment links: creating, changing and finding
// them, and making their invoices. Each change is one transaction with its audit entry.
package ledger
