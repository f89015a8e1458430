// Package invoice is the domain of Quittance: invoices, payments, refunds and the rules that move them from one state
// to the next.
//
// Every rule here is a pure function over values. This package does not read a clock, a database or a network, and it
// imports only the standard library. So the rules about money can be read and tested without the rest of the program.
package invoice
