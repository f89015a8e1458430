// Package web holds the TypeScript modules of the dashboard's pages. They import modules of
// internal/web/checkout/web that both need. `go generate` bundles them into internal/web/dashboard/static. The
// bundles are committed, so that a build needs only Go.
//
// Every page works without them.
package web

//go:generate npm ci --silent --no-fund --no-audit --ignore-scripts --prefix ../../checkout/web
//go:generate go run -modfile=../../../../tools/go.mod ../../checkout/web/bundle.go -modules ../../checkout/web/node_modules -out ../static dashboard.ts refund.ts
