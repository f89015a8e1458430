// Package quittance holds the description of the REST interface and the guides.
package quittance

import "embed"

// OpenAPI is openapi.yaml: the REST interface and its webhooks, in OpenAPI 3.1.
//
//go:embed openapi.yaml
var OpenAPI []byte

// Guides are the guides of the folder docs, in Markdown.
//
//go:embed docs/*.md
var Guides embed.FS
