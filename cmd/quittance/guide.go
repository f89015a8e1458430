package main

import (
	"io"
	"text/template"

	"github.com/quittance/quittance/internal/dev"
)

// guide shows how to use a development world, with commands to paste.
var guide = template.Must(template.New("guide").Parse(`Quittance is ready: open {{.BaseURL}} in a browser, or go on here.

  API         {{.BaseURL}}
  chain       {{.Chain.ChainKey}}, id {{.Chain.ChainID}}, JSON-RPC at {{.Chain.RPCURL}}
  token       {{.Chain.Token}} (test USDC, 6 decimals)
  registry    {{.Chain.Registry}}
  deposits    {{.Chain.DepositFactory}} (factory of deposit addresses)
  relay       {{.Chain.AuthorizationRelay}} (of signed authorizations)
  merchant    {{.Merchant.ID}}, settles at {{.Merchant.Address}}
  webhooks    {{or .WebhookURL "nowhere (start with --webhook-url URL to receive events)"}}
  secret      {{.Merchant.WebhookSecret}}
  provider    {{.Provider.Name}}, announces at {{template "notices" .}}
  its secret  {{.Provider.WebhookSecret}}
  payer       {{.Payer.Address}}
  data        {{.Dir}}

Create an invoice over 4.90 USDC that expires in an hour:

  curl -s '{{.BaseURL}}/api/invoices' -H 'Content-Type: application/json' -d '{"merchantId":"{{.Merchant.ID}}","merchantAddress":"{{.Merchant.Address}}","amount":"4900000","currency":"USDC","chainKey":"{{.Chain.ChainKey}}","expiresAt":'$(($(date +%s)+3600))'}'

Pay it with Foundry's cast: send the transferAmount of the answer, here in AMOUNT:

  cast send --rpc-url '{{.Chain.RPCURL}}' --private-key {{.Payer.PrivateKey}} {{.Chain.Token}} 'transfer(address,uint256)' {{.Merchant.Address}} $AMOUNT

Or open its page, {{.BaseURL}}/checkout/ID, and press the button. Then look:

  curl -s '{{.BaseURL}}/api/invoices?status=paid'
  curl -s '{{.BaseURL}}/api/payments?include=pending'

Refund it, or a part of it, from the merchant's account to the payer's:

  cast send --rpc-url '{{.Chain.RPCURL}}' --private-key {{.Merchant.PrivateKey}} {{.Chain.Token}} 'transfer(address,uint256)' {{.Payer.Address}} $AMOUNT

Announce a transfer as the provider does, with a notice that is signed:

  BODY='{"type":"transfers.created","data":{"id":"transfer-1","amount":{"amount":"4.90","currency":"USD"},"destination":{"type":"blockchain","address":"{{.Merchant.Address}}","chain":"{{.Chain.ChainKey}}"}}}'; T=$(date +%s)
  V1=$(printf '%s.%s' "$T" "$BODY" | openssl dgst -sha256 -hmac '{{.Provider.WebhookSecret}}' -r | cut -d ' ' -f 1)
  curl -s '{{template "notices" .}}' -H 'Content-Type: application/json' -H "X-Provider-Signature: t=$T,v1=$V1" --data-binary "$BODY"

See events come, have them forwarded to your receiver, and make one happen:

  quittance listen --url {{.BaseURL}} --forward-to http://127.0.0.1:9000/webhooks
  quittance trigger invoice.paid --url {{.BaseURL}}

Stop with Ctrl-C.
{{define "notices"}}{{.BaseURL}}/api/webhooks/{{.Provider.Name}}{{end}}`))

// printGuide writes the guide for a world.
func printGuide(out io.Writer, info dev.Info, cfg dev.Config) error {
	return guide.Execute(out, struct {
		dev.Info
		WebhookURL, Dir string
	}{info, cfg.WebhookURL, cfg.Dir})
}
