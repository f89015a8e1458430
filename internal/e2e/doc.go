// Package e2e tests the program as its users meet it: the built binary as a
// child process, HTTP and JSON-RPC over the network, webhooks received and
// verified by the public package. It holds tests alone.
//
// TestCrash kills the program over and over, and the histories have reorgs and
// power cuts happen to it on nodes of two makes; they print the command that
// runs them again with the same random choices.
package e2e
