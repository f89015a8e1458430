package access

// Statements that only this package and its tests run.
var (
	CountActiveKeys = countActiveKeys
	SessionVisits   = sessionVisits
)
