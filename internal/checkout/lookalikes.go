package checkout

import (
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/checkout/locale"
	"github.com/quittance/quittance/internal/invoice"
)

// lookalike is a token on one chain that payers mistake for a currency.
type lookalike struct {
	chainID uint64
	token   invoice.Address
}

// tokenLabel is the name that wallets show for a token, and the currency that it bridges.
type tokenLabel struct{ name, bridged string }

// in returns the label in a language.
func (l tokenLabel) in(text *locale.Text) string {
	if l.bridged == "" {
		return l.name
	}
	return text.T("token.bridged", values{"Name": l.name, "Currency": l.bridged})
}

// lookalikes are the tokens that are most often mistaken for Circle's USDC, with the names
// that wallets show.
var lookalikes = map[lookalike]tokenLabel{
	{42161, chain.MustAddress("0xFF970A61A04b1cA14834A43f5dE4533eBDDB5CC8")}: {"USDC.e", "USDC"},
	{10, chain.MustAddress("0x7F5c764cBc14f9669B88837ca1490cCa17c31607")}:    {"USDC.e", "USDC"},
	{137, chain.MustAddress("0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174")}:   {"USDC.e", "USDC"},
	{43114, chain.MustAddress("0xA7D7079b0FEaD91F3e65f86E8915Cb59c1a4C664")}: {"USDC.e", "USDC"},
	{8453, chain.MustAddress("0xd9aAEc86B65D86f6A7B5B1b0c42FFA531710b6CA")}:  {"USDbC", "USDC"},
	{1, chain.MustAddress("0xdAC17F958D2ee523a2206206994597C13D831ec7")}:     {"USDT", ""},
	{42161, chain.MustAddress("0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9")}: {"USDT", ""},
	{10, chain.MustAddress("0x94b008aA00579c1307B0EF2c499aD98a8ce58e58")}:    {"USDT", ""},
	{137, chain.MustAddress("0xc2132D05D31c914a87C6611C10748AEb04B58e8F")}:   {"USDT", ""},
	{43114, chain.MustAddress("0x9702230A8Ea53601f5cD2dc00fDBc13d4dF4A8c7")}: {"USDT", ""},
}
