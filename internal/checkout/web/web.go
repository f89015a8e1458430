// Package web holds the TypeScript modules of the checkout page. `go generate` bundles them
// into internal/checkout/static; the bundles are committed, so that building needs Go alone.
package web

//go:generate npm ci --silent --no-fund --no-audit --ignore-scripts
//go:generate go -C ../../../tools run ./bundle -modules ../internal/checkout/web/node_modules -out ../internal/checkout/static ../internal/checkout/web/payer.ts ../internal/checkout/web/wallet.ts
