package certs

// Statements that only this package and its tests run.
var (
	DeleteACMEEntry = deleteACMEEntry
	FindACMEEntry   = findACMEEntry
	PutACMEEntry    = putACMEEntry
)
