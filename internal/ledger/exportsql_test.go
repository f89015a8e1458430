package ledger

// Statements that only this package and its tests run.
var (
	FindUnreadTransaction  = findUnreadTransaction
	InsertBareRemainders   = insertBareRemainders
	InsertHeaders          = insertHeaders
	InsertLostInvoices     = insertLostInvoices
	InsertPaymentLink      = insertPaymentLink
	InsertPreparedRefund   = insertPreparedRefund
	InvoiceByCommitment    = invoiceByCommitment
	LockInvoicesToErase    = lockInvoicesToErase
	LockPaymentLink        = lockPaymentLink
	OrphanedRefundsBetween = orphanedRefundsBetween
	PaymentUses            = paymentUses
	ProveAddress           = proveAddress
	ReferenceHolder        = referenceHolder
	RefreshUses            = refreshUses
	ReserveReferences      = reserveReferences
	ReservingRefunds       = reservingRefunds
	UndoDecision           = endDecision
	UpdatePaymentLink      = updatePaymentLink
)
