package access

// HoldLogos makes logos wait until release is called.
func (m *MerchantManager) HoldLogos() (release func()) {
	m.encoding.Lock()
	return m.encoding.Unlock
}

// Statements that only this package and its tests run.
var (
	CountActiveKeys = countActiveKeys
	SessionVisits   = sessionVisits
	CountNotices    = "SELECT count(*) FROM approval_notices"
)
