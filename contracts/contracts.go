// Package contracts holds the Solidity contracts, their compiled artifacts and the Go bindings: the invoice registry, the
// deposit factory and the authorization relay, and a token that behaves as USDC does, for development chains.
//
// Compiling needs npm; its output is committed, so that building the program needs only Go. The bindings pack
// calls and unpack answers without talking to a node: NewInvoiceRegistry().PackOpen(ids) gives calldata to sign, and
// bind.Call with an Instance asks a node. Logs are read by ParsePaid, ParseOpened and ParseClosed rather than by the
// generated Unpack…Event methods, which accept a log whose data is missing.
package contracts

//go:generate npm ci --silent --no-fund --no-audit
//go:generate npm run --silent compile
//go:generate go run ./internal/bindgen/cmd artifacts
