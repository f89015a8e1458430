// Package apitypes has the JSON types of Quittance's REST interface and of its
// events. They are generated from openapi.yaml; the service and package client
// use them.
//
// Amounts are strings of digits in minor units: USDC has 6 decimals, so
// "4900000" is 4.90 USDC. Addresses have their ERC-55 checksum, hashes are
// lower-case hex, and times are Unix seconds. An absent member has its zero value.
//
// The types of the events' data, such as [PaidInvoiceData], decode the Data of an event from webhook.ParseEvent.
package apitypes

//go:generate go run generate.go -o types.gen.go
