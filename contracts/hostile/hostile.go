// Package hostile holds contracts that must not deceive an indexer of payments, and the bindings to deploy and call
// them. Their sources are in contracts/test/mocks. Only tests and benchmarks use them.
package hostile
