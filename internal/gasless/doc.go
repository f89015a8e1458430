// Package gasless pays invoices by authorizations: transfers that the payer signs (EIP-3009)
// and the service sends.
//
// An authorization is checked in full before anything is stored: its terms against the
// invoice, and its execution by a simulation at the chain's newest block (Checker). Then its
// nonce is bound to the invoice for ever, and the transaction manager sends it until its
// window closes. The outcome has three values:
//
//   - paid: the transfer was observed in a block. Its payment is pending until the block is
//     final. A reorg that drops it makes the outcome unknown again.
//   - refused: no transfer was made, and the service will make none. That is certain because
//     nothing was sent and the nonce is unused, or because a final block is past the window.
//   - unknown: nothing of both is certain yet. The payer must not sign again. It ends by
//     itself, at the latest when a block past the window is final.
package gasless
