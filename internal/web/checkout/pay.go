package checkout

import (
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// instruction holds the payment instructions.
type instruction struct {
	Address string // settlement or deposit address, with ERC-55 checksum
	Token   string // contract of the currency
	Due     string // amount due, in major units
	// DueMoney is Due with the currency.
	DueMoney money
	Data     string // calldata of a tagged transfer of Due; empty for a deposit address
	Plain    *plain // nil if plain transfers cannot be attributed
	Call     *call  // nil without a registry
}

// plain is a transfer from any wallet that is attributed by its amount or the deposit
// address. Amount and Extra are in major units.
type plain struct {
	Amount string // exact amount, or the amount due
	Extra  string // part that exceeds the amount due; empty if any amount counts
	Link   string // ERC-681 URL of the transfer
}

// call is a registry call that pays the invoice.
type call struct{ Registry, Arguments string }

// payInFull returns the instructions for the whole amount.
func (s pageInput) payInFull() *instruction {
	inv := s.invoice
	p := s.instruct(inv.Amount, inv.TransferAmount)
	if s.chain.TakesPayment(inv) {
		t := chain.ContractTerms(inv.Terms, inv.ID)
		p.Call = &call{chain.Checksum(s.chain.Registry), fmt.Sprintf("(%s, %s, %s, %d, 0x%x)",
			chain.Checksum(inv.Merchant), p.Token, inv.Amount, inv.ExpiresAt.Unix(), t.Salt)}
	}
	return p
}

// payRemainder returns the instructions for the remainder of a partly paid invoice, with
// its own transfer amount. The registry accepts only the whole amount.
func (s pageInput) payRemainder() *instruction {
	return s.instruct(s.rest(), s.invoice.RemainingTransfer)
}

// rest returns the remainder of a partly paid invoice.
func (s pageInput) rest() invoice.Amount {
	if s.invoice.Remaining.IsZero() {
		return s.invoice.Missing()
	}
	return s.invoice.Remaining
}

// instruct returns the instructions for an amount due and its transfer amount. Without a transfer
// amount, a plain transfer may not be attributed, so only tagged ones are offered. A deposit address
// takes the amount due in plain transfers.
func (s pageInput) instruct(due, transfer invoice.Amount) *instruction {
	p := &instruction{
		Address: chain.Checksum(s.invoice.PayTo()),
		Token:   chain.Checksum(s.invoice.Token),
		Due:     s.major(due), DueMoney: s.money(due),
	}
	if s.invoice.IsDeposit() {
		p.Plain = &plain{Amount: p.Due, Link: chain.TransferLink(s.invoice.Token, s.chain.ID, s.invoice.DepositAddress, due)}
		return p
	}
	p.Data = chain.TaggedTransfer(s.invoice.Merchant, due, s.invoice.CommitmentID)
	if !transfer.IsZero() {
		p.Plain = &plain{
			Amount: s.major(transfer),
			Extra:  s.major(transfer.Minus(due)),
			Link:   chain.TransferLink(s.invoice.Token, s.chain.ID, s.invoice.Merchant, transfer),
		}
	}
	return p
}

// qrChoice is a QR code that the payer can choose, with the ids of its texts.
type qrChoice struct{ ID, Label, Hint, Text string }

// codes returns the QR codes: of the address, of the whole transfer, and of the page at a URL.
func (p *instruction) codes(page string) (all []qrChoice) {
	if p.Plain != nil {
		all = append(all,
			qrChoice{"address", "pay.send.address", "pay.scan.address", p.Address},
			qrChoice{"request", "pay.scan.request", "pay.scan.text", p.Plain.Link})
	}
	return append(all, qrChoice{"page", "pay.scan.page", "pay.scan.phone", page})
}

// URL returns Link as a trusted URL. It contains only addresses and numbers.
func (p plain) URL() template.URL {
	return template.URL(p.Link) //nolint:gosec // see above
}

// record returns the terms that are hashed into the on-chain id, and the outcome of the invoice on the chain.
func (s pageInput) record() []fact {
	inv := s.invoice
	name := func(id string) string { return s.text.T(id, nil) }
	facts := []fact{
		{Name: name("record.id"), Value: inv.CommitmentID.String()},
		{Name: name("record.chainId"), Value: fmt.Sprint(s.chain.ID)},
	}
	if !inv.Registry.IsZero() {
		facts = append(facts, s.addressFact("script.proof.registry", inv.Registry))
	}
	facts = append(facts,
		s.addressFact("record.merchant", inv.Merchant),
		s.addressFact("record.token", inv.Token),
		fact{Name: name("pay.send.amount"), Value: s.text.T("record.minor", values{"Amount": inv.Amount.String()})},
		fact{Name: name("record.until"), Value: fmt.Sprintf("%d (%s)", inv.ExpiresAt.Unix(), s.text.Clock(inv.ExpiresAt))},
		fact{Name: name("record.invoiceId"), Value: inv.ID},
	)
	if !inv.DepositAddress.IsZero() {
		facts = append(facts,
			s.addressFact("record.factory", inv.DepositFactory),
			s.addressFact("record.deposit", inv.DepositAddress),
		)
	}
	if inv.Status == invoice.Paid {
		facts = append(facts, s.transactionFact("record.settled", inv.SettledTx))
	}
	if !inv.SweptTx.IsZero() {
		facts = append(facts, s.transactionFact("record.swept", inv.SweptTx))
	}
	return facts
}

// Terms are the values that are hashed into an invoice's on-chain id, and where the invoice is paid,
// for programs that compute both again.
type Terms struct {
	InvoiceID       string `json:"invoiceId"`
	CommitmentID    string `json:"onChainInvoiceId"`
	ChainKey        string `json:"chainKey"`
	ChainID         uint64 `json:"chainId"`
	Registry        string `json:"registry,omitempty"` // absent if it is the zero address
	MerchantAddress string `json:"merchantAddress"`
	Token           string `json:"token"`
	Amount          string `json:"amount"`
	ExpiresAt       int64  `json:"expiresAt"`
	// DepositFactory and DepositAddress are absent unless the invoice has a deposit address.
	DepositFactory string `json:"depositFactory,omitempty"`
	DepositAddress string `json:"depositAddress,omitempty"`
}

// terms answers with the Terms of an invoice.
func (c *Checkout) terms(w http.ResponseWriter, r *http.Request) error {
	s, err := c.load(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return c.WriteJSON(w, r, http.StatusOK, newTerms(s.invoice, s.chain))
}

func newTerms(inv invoice.Invoice, on chain.Chain) Terms {
	return Terms{
		InvoiceID: inv.ID, CommitmentID: inv.CommitmentID.String(), ChainKey: on.Key, ChainID: on.ID,
		Registry: optional(inv.Registry), MerchantAddress: chain.Checksum(inv.Merchant), Token: chain.Checksum(inv.Token),
		Amount: inv.Amount.String(), ExpiresAt: inv.ExpiresAt.Unix(),
		DepositFactory: optional(inv.DepositFactory), DepositAddress: optional(inv.DepositAddress),
	}
}

// optional returns an address, or "" for the zero address.
func optional(a invoice.Address) string {
	if a.IsZero() {
		return ""
	}
	return chain.Checksum(a)
}

// Commitment computes the on-chain id from the terms. It fails if one of them is malformed.
func (t Terms) Commitment() (invoice.Hash, error) {
	terms := invoice.Terms{ExpiresAt: invoice.Unix(t.ExpiresAt)}
	var registry invoice.Address
	for _, field := range []struct {
		name, text string
		into       *invoice.Address
	}{
		{"registry", t.Registry, &registry}, {"merchantAddress", t.MerchantAddress, &terms.Merchant}, {"token", t.Token, &terms.Token},
	} {
		var err error
		if field.text == "" && field.into == &registry {
			continue
		}
		if *field.into, err = chain.ParseAddress(field.text); err != nil {
			return invoice.Hash{}, fmt.Errorf("%s %w", field.name, err)
		}
	}
	var err error
	if terms.Amount, err = invoice.ParseAmount(t.Amount); err != nil {
		return invoice.Hash{}, fmt.Errorf("amount: %w", err)
	}
	return chain.CommitmentID(t.ChainID, registry, terms, t.InvoiceID), nil
}

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

// walletLink opens a page in the browser of a wallet on a phone.
type walletLink struct{ Name, URL string }

// walletLinks returns the links that open a page in each known wallet, or nil without a public URL. The formats are
// documented at docs.metamask.io/metamask-connect/evm/guides/metamask-exclusive/use-deeplinks,
// docs.cdp.coinbase.com/coinbase-wallet/developer-guidance/mobile-dapp-integration and
// developer.trustwallet.com/developer/develop-for-trust/deeplinking. Rabby documents no format: it is read from
// useUniversalLinkOnTop in github.com/RabbyHub/rabby-mobile.
func walletLinks(publicURL, path string) []walletLink {
	if publicURL == "" {
		return nil
	}
	page := publicURL + path
	escaped := url.QueryEscape(page)
	_, hostAndPath, _ := strings.Cut(page, "://")
	return []walletLink{
		{"MetaMask", "https://link.metamask.io/dapp/" + hostAndPath},
		{"Coinbase Wallet", "https://go.cb-w.com/dapp?cb_url=" + escaped},
		{"Trust", "https://link.trustwallet.com/open_url?coin_id=60&url=" + escaped},
		{"Rabby", "https://go.rabby.io/mobile/?_cmd=open-dapp&dapp=" + escaped},
	}
}
