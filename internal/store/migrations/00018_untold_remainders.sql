-- +goose Up

-- Open invoices that lack what their payers are to be told of the rest: see UntoldInvoices. There are seldom any.
CREATE INDEX invoices_untold ON invoices (chain_key, id) WHERE status = 'open' AND (sums_stale = 1 OR remaining IS NOT NULL AND remaining_transfer IS NULL);
