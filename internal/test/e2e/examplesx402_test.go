package e2e

import (
	"encoding/json"
	"math/big"
	"net/http"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/test/expect"
)

// x402 makes a payment of a resource of the merchant by x402, with a key of the merchant.
func (s *story) x402() {
	s.Helper()
	made := decoded[apitypes.KeySecretResponse](s, s.do(http.MethodPost, "/api/keys", `{"name":"api server","merchantId":"acme","scopes":["standard"]}`,
		"Authorization", "Bearer "+s.key, "Content-Type", "application/json"), http.StatusCreated)
	operator := s.key
	s.key = made.Secret
	defer func() { s.key = operator }()

	info, now := s.info.Load(), time.Now().Unix()
	payer := s.payer()
	authorization := contracts.Authorization{
		From: payer.address, To: s.till.address, Value: big.NewInt(10_000),
		ValidAfter: big.NewInt(now - 600), ValidBefore: big.NewInt(now + 300), Nonce: common.BigToHash(big.NewInt(now)),
	}
	token := common.HexToAddress(info.Chain.Token)
	signature, err := authorization.Sign(contracts.TestUSDCDomain(new(big.Int).SetUint64(info.Chain.ChainID), token), payer.key)
	expect.OK(s, err)
	terms := strings.NewReplacer("TOKEN", token.Hex(), "TILL", s.till.address.Hex()).Replace(`{
      "scheme": "exact", "network": "eip155:1337", "amount": "10000", "asset": "TOKEN", "payTo": "TILL", "maxTimeoutSeconds": 300,
      "extra": {"name": "USD Coin", "version": "2"}
    }`)
	signed, err := json.MarshalIndent(map[string]string{
		"from": payer.address.Hex(), "to": s.till.address.Hex(), "value": "10000", "validAfter": authorization.ValidAfter.String(),
		"validBefore": authorization.ValidBefore.String(), "nonce": authorization.Nonce.Hex(),
	}, "      ", "  ")
	expect.OK(s, err)
	body := `{
  "x402Version": 2,
  "paymentPayload": {
    "x402Version": 2,
    "resource": {"url": "https://api.shop.example/forecast/oslo"},
    "accepted": ` + terms + `,
    "payload": {
      "authorization": ` + string(signed) + `,
      "signature": "` + hexutil.Encode(signature.Bytes()) + `"
    }
  },
  "paymentRequirements": ` + terms + `
}`
	s.call("getX402Supported", http.MethodGet, "/x402/supported", "")
	if a := s.call("verifyX402", http.MethodPost, "/x402/verify", body); !strings.Contains(string(a.body), `"isValid":true`) {
		s.Errorf("verified as %s", a.body)
	}
	if a := s.call("settleX402", http.MethodPost, "/x402/settle", body); !strings.Contains(string(a.body), `"success":true`) {
		s.Errorf("settled as %s", a.body)
	}
}
