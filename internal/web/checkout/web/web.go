// Package web holds the TypeScript modules of the checkout page. `go generate` bundles them into
// internal/web/checkout/static. The bundles are committed, so that a build needs only Go.
package web

//go:generate npm ci --silent --no-fund --no-audit --ignore-scripts
//go:generate go run -modfile=../../../../tools/go.mod bundle.go -modules node_modules -out ../static -classic embed.ts checkout.ts wallet.ts embed.ts
