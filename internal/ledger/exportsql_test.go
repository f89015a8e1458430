package ledger

// Statements that only this package and its tests run.
var (
	FindUnreadTransaction  = findUnreadTransaction
	InsertBareRemainders   = insertBareRemainders
	InsertLostInvoices     = insertLostInvoices
	InsertPreparedRefund   = insertPreparedRefund
	LockInvoicesToErase    = lockInvoicesToErase
	OrphanedRefundsBetween = orphanedRefundsBetween
	PaymentUses            = paymentUses
	ProveAddress           = proveAddress
	RefreshUses            = refreshUses
	ReservingRefunds       = reservingRefunds
)
