// Package gasless pays invoices with authorizations: transfers that the payer signs (EIP-3009) and the service sends.
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
package gasless
