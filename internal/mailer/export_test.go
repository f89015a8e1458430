package mailer

// MailboxOf is mailboxOf for tests.
var MailboxOf = mailboxOf

// ReadReport is readReport for tests, and IDOf returns the id of a mail.
var (
	ReadReport = readReport
	IDOf       = Mail.id
)
