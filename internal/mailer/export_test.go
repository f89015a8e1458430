package mailer

// MailboxOf is mailboxOf for tests.
var MailboxOf = mailboxOf
