package main

import (
	"io"
	"strings"
	"text/template"

	"github.com/quittance/quittance/internal/dev"
)

// guide shows how to use a development world, with commands to paste.
var guide = template.Must(template.New("guide").Parse(`Quittance is ready: open {{.BaseURL}} in a browser, or go on here.

  dashboard   {{if .Merchant.Key}}{{.BaseURL}}/dev/merchant   signs you in as {{.Merchant.ID}}
              {{end}}{{.BaseURL}}/dev/operator   signs you in as the operator
  checkout    {{.BaseURL}}/dev/checkout   of a fresh invoice
  scenarios   {{.BaseURL}}/dev/scenarios, or {{.Program}} trigger --url {{.BaseURL}} --list
  clock       {{.Clock}}, {{.Clock.Ahead}} ahead of real time; {{.Program}} clock advance 1h --url {{.BaseURL}}
  reference   {{.BaseURL}}/docs

Run a program of the merchant, such as the README's, with:

{{range .Environment}}  export {{.}}
{{end}}
{{if .WebhookURL}}Its events are posted to {{.WebhookURL}}. See them come, or make one happen:{{else}}Forward its events to it, or make one happen:{{end}}

  {{.Program}} listen --url {{.BaseURL}}{{if not .WebhookURL}} --forward-to http://{{.Receiver}}/webhooks{{end}}
  {{.Program}} trigger invoice.paid --url {{.BaseURL}}

Create an invoice over 4.90 USDC that expires in an hour:

  curl -s '{{.BaseURL}}/api/invoices' -H 'Content-Type: application/json' -d '{"merchantId":"{{.Merchant.ID}}","amount":"4900000","currency":"USDC","chainKey":"{{.Chain.ChainKey}}","expiresAt":'$(($(date +%s)+3600))'}'

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

What runs:

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

Stop with Ctrl-C.
{{define "notices"}}{{.BaseURL}}/api/webhooks/{{.Provider.Name}}{{end}}`))

// printGuide writes the guide for a world.
func printGuide(out io.Writer, w *dev.World) error {
	return guide.Execute(out, struct {
		dev.Guide
		Clock dev.ClockInfo
	}{w.Guide, w.Clock})
}

// programName returns how a user calls the program that runs as path.
func programName(path string) string {
	if strings.Contains(path, "go-build") { // the file that go run has built
		return "go run ./cmd/quittance"
	}
	return path
}
