// Package web holds the TypeScript modules of the dashboard's pages, which import those of
// internal/checkout/web where both need the same. `go generate` bundles them into
// internal/dashboard/static; the bundles are committed, so that building needs Go alone.
//
// Every page works without them.
package web

//go:generate npm ci --silent --no-fund --no-audit --ignore-scripts --prefix ../../checkout/web
//go:generate go run -modfile=../../../tools/go.mod ../../checkout/web/bundle.go -modules ../../checkout/web/node_modules -out ../static dashboard.ts refund.ts
