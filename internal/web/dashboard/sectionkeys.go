package dashboard

import "strings"

// sectionKeys are the keys that lead to pages, after g.
var sectionKeys = map[string]string{
	"/dashboard": "h", "/dashboard/invoices": "i", "/dashboard/inbox": "n", "/dashboard/payments": "p",
	"/dashboard/refunds": "r", "/dashboard/links": "l", "/dashboard/events": "e",
}

// pathNewInvoice is the path of the page that the key c leads to.
const pathNewInvoice = "/dashboard/invoices/new"

// Key returns the key that leads to the section after g, or "". It is for templates.
func (s section) Key() string {
	path, _, _ := strings.Cut(s.Address, "?")
	return sectionKeys[path]
}
