#!/bin/sh
# Starts a development world, runs the README's program as its merchant, pays the program's
# invoice on the chain, and waits until the program has handled invoice.paid. It needs Go and
# curl, and is run from the root of a clone:
#
#   sh examples/quickstart/run.sh
set -eu

dir=$(mktemp -d)
export QUITTANCE_URL=http://127.0.0.1:${API_PORT:-8080} ADDR=127.0.0.1:${SHOP_PORT:-9000}
trap 'kill $world $shop 2>/dev/null || true; wait; rm -rf "$dir"' EXIT
world= shop=

# value NAME FILE prints the first text called NAME in a file of JSON.
value() { sed -n 's/.*"'"$1"'": *"\([^"]*\)".*/\1/p' "$2" | head -1; }
# await TEXT FILE waits until a file has a line with a text.
await() {
	n=0
	until grep -qs "$1" "$2"; do
		n=$((n + 1))
		[ $n -le 600 ] || { echo "no \"$1\" in $2 after a minute" >&2; exit 1; }
		sleep 0.1
	done
}

echo "1. quittance dev"
go build -o "$dir/quittance" ./cmd/quittance
"$dir/quittance" dev --listen "127.0.0.1:${API_PORT:-8080}" --data "$dir/world" --info "$dir/info.json" --webhook-url "http://$ADDR/webhooks" >"$dir/dev.log" &
world=$!
await webhookSecret "$dir/info.json"

echo "2. the key and the webhook secret of $(value id "$dir/info.json"), which settles at $(value address "$dir/info.json")"
QUITTANCE_API_KEY=$(value key "$dir/info.json") WEBHOOK_SECRET=$(value webhookSecret "$dir/info.json")
export QUITTANCE_API_KEY WEBHOOK_SECRET

echo "3. the program of the README, $(grep -c . examples/quickstart/main.go) lines"
go build -o "$dir/shop" ./examples/quickstart
"$dir/shop" 2>"$dir/shop.log" &
shop=$!
await 'pay at' "$dir/shop.log"
cat "$dir/shop.log"

echo "4. the payer presses the button of the page, which pays from the test wallet"
page=$(sed -n 's/.*pay at //p' "$dir/shop.log")
invoice=${page##*/}
curl -fsS -X POST "$page/test-payment" -H "Origin: $QUITTANCE_URL" -o /dev/null
await "paid $invoice" "$dir/shop.log"
echo "5. the program has handled invoice.paid of $invoice"
curl -fsS "$QUITTANCE_URL/api/invoices/$invoice" -H "Authorization: Bearer $QUITTANCE_API_KEY" | tr ',' '\n' | grep -e '"status"' -e settledTxHash
