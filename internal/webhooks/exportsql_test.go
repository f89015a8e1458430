package webhooks

// Statements that only this package and its tests run.
var (
	Endpoints       = endpoints
	SecretsNotUnder = secretsNotUnder
)
