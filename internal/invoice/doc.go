// Package invoice is the domain of Quittance: invoices, payments, refunds and
// the rules that move them from one state to the next.
//
// Every rule here is a pure function over values. Nothing in this package
// reads a clock, a database or a network, and it imports the standard library
// alone, so that what decides about money can be read and tested by itself.
package invoice
