package main

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/apitypes"
)

// wallets returns the accounts of a merchant.
func (m *merchant) wallets() []string { return []string{m.name, m.name + " two"} }

// addressList is a list of allowed addresses that a merchant has asked for or was shown, which may be in force.
type addressList struct {
	addresses []common.Address // empty: every address is allowed
	until     time.Time        // when it was certainly no longer in force; zero if that is not known
}

// changeAddresses asks for another list of allowed addresses, or only for the one in force.
func (m *merchant) changeAddresses() {
	r := m.draws
	method, in, path := http.MethodGet, any(nil), "/api/merchants/"+m.name
	if r.IntN(2) == 0 {
		var list []apitypes.AllowedAddress
		from := r.IntN(2)
		if m.preset {
			from = 0 // a list must hold the default address
		}
		for _, name := range m.wallets()[from : from+1+r.IntN(2-from)] {
			for _, c := range m.world.chains {
				list = append(list, apitypes.AllowedAddress{ChainKey: c.key, Address: addressOf(account(name)).Hex()})
			}
		}
		method, in = http.MethodPatch, object{"allowedAddresses": list}
		m.noteLists(time.Time{}, list)
	}
	var answer apitypes.MerchantResponse
	err, settled := m.call(method, path, in, &answer), time.Second
	if errors.Is(err, errLost) {
		err, settled = m.insist(method, path, in, &answer), time.Minute // the lost request may take effect later
	}
	if err != nil {
		return
	}
	shown := [][]apitypes.AllowedAddress{answer.Merchant.AllowedAddresses}
	if pending := answer.Merchant.PendingAllowedAddresses; pending != nil {
		shown = append(shown, pending.Addresses)
	}
	m.noteLists(time.Now().Add(settled), shown...)
}

// noteLists adds lists that may be in force from now on. Earlier ones may be until a time, which is zero if that is not known.
func (m *merchant) noteLists(until time.Time, lists ...[]apitypes.AllowedAddress) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.lists {
		if m.lists[i].until.IsZero() {
			m.lists[i].until = until
		}
	}
	for _, list := range lists {
		var all []common.Address
		for _, a := range list {
			all = append(all, common.HexToAddress(a.Address))
		}
		m.lists = append(m.lists, addressList{addresses: all})
	}
}

// allows reports whether the service must, and whether it may accept an address in an invoice that was asked for at a
// time or later. If the machine's clock was set, a list may have been in force again.
func (m *merchant) allows(address common.Address, since time.Time) (must, may bool) {
	set := len(m.world.machine.recent()) > 1
	m.mu.Lock()
	defer m.mu.Unlock()
	must = true
	for _, l := range m.lists {
		if set || l.until.IsZero() || l.until.After(since) {
			has := len(l.addresses) == 0 || slices.Contains(l.addresses, address)
			must, may = must && has, may || has
		}
	}
	return must, may
}

// drawWallet draws the account that an invoice settles to. Most are allowed.
func (m *merchant) drawWallet() string {
	names, r := m.wallets(), m.draws
	r.Shuffle(2, func(i, j int) { names[i], names[j] = names[j], names[i] })
	if must, _ := m.allows(addressOf(account(names[0])), time.Now()); must || r.IntN(4) == 0 {
		return names[0]
	}
	return names[1]
}
