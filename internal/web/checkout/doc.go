// Package checkout serves the page on which a customer pays an invoice, with the amount due, the payment instructions
// and the status. The page works without scripts; with them it counts down and updates itself.
//
// One pure function, newView, decides the content; the templates only lay it out.
package checkout
