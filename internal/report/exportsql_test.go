package report

// Statements that only this package and its tests run.
var (
	ReplaceDays = replaceDays
)
