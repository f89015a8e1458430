package checkout

import (
	"net/http"
	"strconv"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// walletData is the data for the script that talks to the payer's wallet. Amounts are in minor units.
type walletData struct {
	Terms
	Merchant string `json:"merchant"`
	Network  string `json:"network"` // display name
	Currency string `json:"currency"`
	Decimals int    `json:"decimals"`
	PayTo    string `json:"payTo"`
	Due      string `json:"due"` // 0 if the invoice is paid or cannot be paid
	// TransferAmount identifies the invoice; absent without one, and for deposit addresses.
	TransferAmount string `json:"transferAmount,omitempty"`
	Gasless        bool   `json:"gasless"`      // the service sends payers' authorizations
	RegistryPays   bool   `json:"registryPays"` // the registry takes the whole amount
	// Block is a final block, which a wallet on the same network has, too. Absent before the first one.
	Block    *walletBlock    `json:"block,omitempty"`
	Coin     chain.Coin      `json:"coin"`
	RPC      []string        `json:"rpc,omitempty"` // nodes, for a wallet that lacks the network
	Payments []walletPayment `json:"payments"`      // at most MaxPayments, newest first, without orphaned ones
	Now      int64           `json:"now"`           // Unix seconds
}

// walletBlock identifies a block. Number is decimal digits.
type walletBlock struct {
	Number string `json:"number"`
	Hash   string `json:"hash"`
}

// walletPayment is a payment that the service has seen.
type walletPayment struct {
	TxHash string `json:"txHash"`
	From   string `json:"from"`
}

// wallet answers with the walletData of an invoice.
func (c *Checkout) wallet(w http.ResponseWriter, r *http.Request) error {
	s, err := c.loadFor(r)
	if err != nil {
		return err
	}
	data := s.walletData()
	data.Gasless = c.conf.TakesX402 != nil && c.conf.TakesX402(s.chain.Key)
	return c.WriteJSON(w, r, http.StatusOK, data)
}

// walletData returns every field except Gasless. It is a pure function.
func (s pageInput) walletData() walletData {
	inv := s.invoice
	d := walletData{
		Terms: newTerms(inv, s.chain), Merchant: s.merchant(), Network: s.network(),
		Currency: inv.Currency, Decimals: s.token.Decimals, PayTo: chain.Checksum(inv.PayTo()), Due: "0",
		RegistryPays: s.chain.TakesPayment(inv), Coin: s.chain.Coin(), RPC: s.chain.WalletNodes(),
		Payments: []walletPayment{}, Now: s.now.Unix(),
	}
	transfer := inv.TransferAmount
	switch s.state() {
	case waiting:
		d.Due = inv.Amount.String()
	case partial:
		d.Due, transfer = s.rest().String(), inv.RemainingTransfer
	case seen, checking, unknown, paid, refunded, expired, void, draft:
	}
	if d.Due != "0" && !transfer.IsZero() && !inv.IsDeposit() {
		d.TransferAmount = transfer.String()
	}
	if s.following.confirmed.Number > 0 {
		d.Block = &walletBlock{strconv.FormatUint(s.following.confirmed.Number, 10), s.following.confirmed.Hash.String()}
	}
	for _, p := range s.payments {
		if p.Status == invoice.Orphaned {
			continue // the script follows it
		}
		d.Payments = append(d.Payments, walletPayment{p.TxHash.String(), chain.Checksum(p.From)})
	}
	return d
}
