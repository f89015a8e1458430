// Package dev runs a development world in one process: the service on SQLite, an embedded EVM chain with a token and a
// registry, and accounts of a merchant and a payer.
//
// # Scenarios
//
// RunDemo runs six scenarios, each the life of an invoice, in a development world. It checks the outcome in the API, on
// the chain, and in the webhooks that the merchant receives.
//
// # Events
//
// Trigger causes an event in a development world: it creates an invoice, and pays or refunds it over the chain's
// JSON-RPC, as merchants and payers do.
//
// # Receivers
//
// Listen follows a service's events for the developer of a receiver: it prints each event, and forwards it to a
// receiver as the service would deliver it.
package dev
