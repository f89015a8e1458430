// Package checkout serves the page on which a customer pays an invoice: what
// is due and where to send it, and what has become of it. The page is whole
// without scripts; with them it counts down and updates by itself.
//
// What the page says is decided by one pure function, view; the templates
// only lay it out.
package checkout
