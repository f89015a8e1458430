// Package x402 has the messages of the x402 protocol, version 2, that the scheme "exact" on EVM chains needs: a payer
// signs an EIP-3009 authorization, and a facilitator sends it. Messages from outside are parsed strictly, and unknown
// members are ignored.
//
// The protocol is specified at https://github.com/x402-foundation/x402/tree/main/specs.
//
// # Facilitator
//
// A Service accepts payments by the x402 protocol: for invoices, from any client (Pay), and for merchants' resources,
// through their servers (Verify and Settle).
//
// A payer is charged only once for a signature, because an authorization is bound to one invoice when it is accepted.
// While its outcome is open, the answer is the reason settlement_pending, and repeating the same payment returns the
// outcome.
//
// # Authorizations
//
// The package also pays invoices with authorizations: transfers that the payer signs (EIP-3009) and the service sends.
//
// An authorization is checked completely before it is stored: its terms against the invoice, and its execution by a
// simulation at the chain's newest block (Checker). Then its nonce is bound to the invoice permanently, and the
// transaction manager sends it until its window closes. There are three outcomes:
//
//   - paid: the transfer was observed in a block. Its payment is pending until the block is
//     final. A reorg that drops it makes the outcome unknown again.
//   - refused: no transfer was made, and the service will not make one. That is certain because
//     no transaction was sent and the nonce is unused, or because a final block is past the window.
//   - unknown: neither is certain yet. The payer must not sign again. This outcome ends
//     without further action, at the latest when a block past the window is final.
package x402
