package dev

import (
	"encoding/hex"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/dev/devchain"
)

// Info holds everything that programs need to use a development world. Its keys and secrets are worthless outside of
// it.
type Info struct {
	BaseURL  string       `json:"baseUrl"`
	Merchant MerchantInfo `json:"merchant"`
	Payer    AccountInfo  `json:"payer"`
	Provider ProviderInfo `json:"provider"`
	Chain    ChainInfo    `json:"chain"`
}

// MerchantInfo is the demo merchant, with its settlement account and its webhook
// secret.
type MerchantInfo struct {
	ID            string `json:"id"`
	Name          string `json:"name"`
	Address       string `json:"address"`
	PrivateKey    string `json:"privateKey"`
	Key           string `json:"key"` // of the REST interface; empty if the merchant was retired
	WebhookSecret string `json:"webhookSecret"`
}

// AccountInfo is an account of the chain. PrivateKey is 0x and 64 hex digits.
type AccountInfo struct {
	Address    string `json:"address"`
	PrivateKey string `json:"privateKey"`
}

// ProviderInfo is the configured transfer provider.
type ProviderInfo struct {
	Name          string `json:"name"`
	WebhookSecret string `json:"webhookSecret"`
}

// ChainInfo is the embedded chain. Finality is the number of blocks that confirm a
// payment.
type ChainInfo struct {
	ChainKey           string `json:"chainKey"`
	ChainID            uint64 `json:"chainId"`
	RPCURL             string `json:"rpcUrl"`
	Token              string `json:"token"`
	Registry           string `json:"registry"`
	DepositFactory     string `json:"depositFactory"`
	AuthorizationRelay string `json:"authorizationRelay"`
	Finality           uint64 `json:"finality"`
}

// Write writes the Info to a file, atomically.
func (i Info) Write(path string) error { return writeFile(path, i) }

func newInfo(baseURL string, s state, c chain.Chain, node *devchain.Chain) Info {
	merchant, payer := node.Keys.Merchant, node.Keys.Payer
	return Info{
		BaseURL: baseURL,
		Merchant: MerchantInfo{
			ID: MerchantID, Name: merchantName, Address: devchain.Address(merchant).Hex(),
			PrivateKey: "0x" + hex.EncodeToString(crypto.FromECDSA(merchant)), Key: s.MerchantKey, WebhookSecret: s.MerchantSecret,
		},
		Payer: AccountInfo{
			Address: devchain.Address(payer).Hex(), PrivateKey: "0x" + hex.EncodeToString(crypto.FromECDSA(payer)),
		},
		Provider: ProviderInfo{Name: ProviderName, WebhookSecret: s.ProviderSecret},
		Chain: ChainInfo{
			ChainKey: c.Key, ChainID: c.ID, RPCURL: node.RPCURL(),
			Token: node.Token.Hex(), Registry: node.Registry.Hex(),
			DepositFactory: node.DepositFactory.Hex(), AuthorizationRelay: node.AuthorizationRelay.Hex(),
			Finality: c.Finality.Depth,
		},
	}
}
