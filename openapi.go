// Package quittance holds the description of the REST interface.
package quittance

import _ "embed" // for OpenAPI

// OpenAPI is openapi.yaml: the REST interface and its webhooks, in OpenAPI 3.1.
//
//go:embed openapi.yaml
var OpenAPI []byte
