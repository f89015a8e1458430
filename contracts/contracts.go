// Package contracts holds the Solidity contracts, their compiled artifacts and the Go bindings: the invoice registry,
// the deposit factory and the authorization relay, and a token that behaves like USDC, for development chains.
//
// Compiling needs npm; its output is committed, so that building the program needs only Go. The bindings pack calls and
// unpack answers without calling a node: NewInvoiceRegistry().PackOpen(ids) returns calldata to sign, and bind.Call
// with an Instance asks a node. ParsePaid, ParseOpened and ParseClosed parse logs. The generated Unpack…Event methods
// are not used, because they accept a log with missing data.
package contracts

//go:generate npm ci --silent --no-fund --no-audit
//go:generate npm run --silent compile
//go:generate go run ./internal/bindgen/cmd artifacts
