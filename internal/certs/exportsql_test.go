package certs

// Statements that only this package and its tests run.
var (
	ClaimACMEOrder   = claimACMEOrder
	DeleteACMEEntry  = deleteACMEEntry
	FindACMEEntry    = findACMEEntry
	PutACMEEntry     = putACMEEntry
	ReleaseACMEOrder = releaseACMEOrder
)
