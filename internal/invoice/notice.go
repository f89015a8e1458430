package invoice

import "time"

// Notice is a transfer that an external provider announced: the fields of its request, and their meaning according to
// the provider's configuration.
type Notice struct {
	ID               string
	Provider         string
	Type             string
	TransferID       string    // the provider's
	AmountText       string    // as sent, in major units
	ProviderCurrency string    // as sent
	ProviderChain    string    // as sent
	Destination      string    // as sent
	Amount           Amount    // minor units; zero when the currency is unknown
	Currency         string    // ours; empty when unknown
	ChainKey         string    // ours; empty when unknown
	Address          Address   // the destination; zero unless it is an address of the chain
	PaymentID        string    // the announced payment; empty while unknown
	ReceivedAt       time.Time // to the second
}

// NoticeWindow is the maximum time between a notice and the first sight of the
// payment that it announces.
const NoticeWindow = 48 * time.Hour
