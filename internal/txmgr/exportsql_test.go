package txmgr

// Statements that only this package and its tests run.
var (
	AcceptAttempt = acceptAttempt
	NoteNonces    = noteNonces
	Spending      = spending
)
