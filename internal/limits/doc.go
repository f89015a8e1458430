// Package limits bounds the use of shared resources by clients.
//
// # Rates and shares
//
// The package limits how often clients make requests, by a token bucket for each, and how much
// of a resource they use at the same time.
//
// # Addresses of clients
//
// It determines the address of the client that sent a request, which may
// have come through reverse proxies.
//
// # File descriptors
//
// Descriptors divides the process's file descriptors among its parts that open
// connections, so that no part can exhaust those of another.
package limits
