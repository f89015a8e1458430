// Package hostile holds contracts that an indexer of payments must not be taken in by, and the bindings to deploy and
// call them. Their sources are in contracts/test/mocks. They serve tests and benchmarks alone.
package hostile
