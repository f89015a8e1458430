package checkout

import (
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/checkout/locale"
	"github.com/quittance/quittance/internal/invoice"
)

// tokenContract is the contract of a token on a chain.
type tokenContract struct {
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

// Labels of lookalikes.
var (
	bridged     = tokenLabel{"USDC.e", chain.USDC}
	bridgedBase = tokenLabel{"USDbC", chain.USDC}
	tether      = tokenLabel{name: "USDT"}
	euro        = tokenLabel{name: "EURC"}
)

// lookalikeDecimals are the decimals of all lookalikes.
const lookalikeDecimals = 6

// lookalikes are the tokens that are most often mistaken for Circle's USDC. docs/payments.md
// names the sources.
var lookalikes = map[tokenContract]tokenLabel{
	// Ethereum
	{1, chain.MustAddress("0xdAC17F958D2ee523a2206206994597C13D831ec7")}: tether,
	{1, chain.MustAddress("0x1aBaEA1f7C830bD89Acc67eC4af516284b1bC33c")}: euro,
	// OP Mainnet
	{10, chain.MustAddress("0x7F5c764cBc14f9669B88837ca1490cCa17c31607")}: bridged,
	{10, chain.MustAddress("0x94b008aA00579c1307B0EF2c499aD98a8ce58e58")}: tether,
	// Polygon PoS
	{137, chain.MustAddress("0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174")}: bridged,
	{137, chain.MustAddress("0xc2132D05D31c914a87C6611C10748AEb04B58e8F")}: tether,
	// Base
	{8453, chain.MustAddress("0xd9aAEc86B65D86f6A7B5B1b0c42FFA531710b6CA")}: bridgedBase,
	{8453, chain.MustAddress("0xfde4C96c8593536E31F229EA8f37b2ADa2699bb2")}: tether,
	{8453, chain.MustAddress("0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42")}: euro,
	// Arbitrum One
	{42161, chain.MustAddress("0xFF970A61A04b1cA14834A43f5dE4533eBDDB5CC8")}: bridged,
	{42161, chain.MustAddress("0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9")}: tether,
	// Avalanche C-Chain
	{43114, chain.MustAddress("0xA7D7079b0FEaD91F3e65f86E8915Cb59c1a4C664")}: bridged,
	{43114, chain.MustAddress("0x9702230A8Ea53601f5cD2dc00fDBc13d4dF4A8c7")}: tether,
}
