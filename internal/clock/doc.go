// Package clock has the tools of background work and of time.
//
// # Waiting
//
// The package has what background work needs in order to wait: sleep that ends
// with a context, jitter, and wake-ups.
//
// # Times
//
// It also compares and formats times.
//
// # Watchdog
//
// A Watchdog detects work that makes no progress, for any reason: a call that
// ignores its context, a lock that is never released, a peer that never answers.
package clock
