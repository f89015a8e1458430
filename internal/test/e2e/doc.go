// Package e2e tests the program as its users meet it: the built binary as a child process, HTTP and JSON-RPC over the
// network, webhooks received and verified by the public package. It contains only tests.
//
// TestExtraCrash kills the program repeatedly, and prints the command that repeats it with the same random choices.
package e2e
