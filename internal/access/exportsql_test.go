package access

// Statements that only this package and its tests run.
var (
	CountActiveKeys = countActiveKeys
	SessionVisits   = sessionVisits
	CountNotices    = "SELECT count(*) FROM approval_notices"
)
