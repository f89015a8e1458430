package webhooks

// Endpoints exports endpoints for its tests.
var Endpoints = endpoints
