package dashboard

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// addressRow is a row of a form of addresses.
type addressRow struct {
	ChainKey, Address string
	Networks          []option
	Error             string // of the address
}

// emptyRows is how many addresses can be added at a time.
const emptyRows = 2

// addressRows returns the rows of addresses, and emptyRows empty ones. A row has a menu of the service's
// chains, and of its own if the service no longer has that.
func (v *visit) addressRows(all []addressRow) []addressRow {
	networks := v.networks()
	rows := append(slices.Clone(all), make([]addressRow, emptyRows)...)
	for i, row := range rows {
		rows[i].Networks = networks
		if !slices.ContainsFunc(networks, func(o option) bool { return o.Value == row.ChainKey }) && row.ChainKey != "" {
			rows[i].Networks = append(slices.Clone(networks), option{Value: row.ChainKey, Text: v.Network(row.ChainKey)})
		}
	}
	return rows
}

// allowedRows returns the rows of allowed addresses.
func allowedRows(all []apitypes.AllowedAddress) (rows []addressRow) {
	for _, a := range all {
		rows = append(rows, addressRow{ChainKey: a.ChainKey, Address: a.Address})
	}
	return rows
}

// defaultRows returns the rows of default addresses, by chain.
func defaultRows(all map[string]apitypes.Address) (rows []addressRow) {
	for _, chainKey := range slices.Sorted(maps.Keys(all)) {
		rows = append(rows, addressRow{ChainKey: chainKey, Address: all[chainKey]})
	}
	return rows
}

// typedRows returns the rows of a form without those that were cleared, and whether each address is
// one, with the right checksum. With once, a chain has one address.
func typedRows(r *http.Request, once bool) (rows []addressRow, valid bool) {
	text, valid := visitOf(r).text, true
	chains, addresses := r.PostForm["chainKey"], r.PostForm["address"]
	for i := range min(len(chains), len(addresses)) {
		row := addressRow{ChainKey: chains[i], Address: strings.TrimSpace(addresses[i])}
		if row.Address == "" {
			continue
		}
		_, malformed := invoice.ParseAddress(row.Address)
		_, wrong := chain.ParseAddress(row.Address)
		switch {
		case malformed != nil:
			row.Error = text.T("settings.address.form", nil)
		case wrong != nil:
			row.Error = text.T("settings.address.checksum", nil)
		case once && slices.ContainsFunc(rows, func(other addressRow) bool { return other.ChainKey == row.ChainKey }):
			row.Error = text.T("settings.address.twice", nil)
		}
		valid = valid && row.Error == ""
		rows = append(rows, row)
	}
	return rows, valid
}
