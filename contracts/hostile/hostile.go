// Package hostile holds the bindings of tokens and accounts that misbehave, to deploy and call them. Their sources are in
// contracts/test/mocks. Only tests and benchmarks use them.
package hostile
