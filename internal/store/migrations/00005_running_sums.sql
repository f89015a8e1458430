-- Running sums: what an invoice's payments add up to, kept with the invoice.

-- +goose Up

ALTER TABLE invoices ADD COLUMN sums_stale BIGINT NOT NULL DEFAULT 0 CHECK (sums_stale IN (0, 1)); -- 1: the sums below are not known, and the payments must be added up
ALTER TABLE invoices ADD COLUMN payment_count BIGINT NOT NULL DEFAULT 0 CHECK (payment_count >= 0); -- its payments, in any status
ALTER TABLE invoices ADD COLUMN arrived_in_time TEXT NOT NULL DEFAULT '0' CHECK (trim(arrived_in_time, '0123456789') = '' AND length(arrived_in_time) >= 1); -- mined by expires_at, confirmed or not
ALTER TABLE invoices ADD COLUMN arrived_in_time_dust TEXT NOT NULL DEFAULT '0' CHECK (trim(arrived_in_time_dust, '0123456789') = '' AND length(arrived_in_time_dust) >= 1); -- how much of arrived_in_time is dust
ALTER TABLE invoices ADD COLUMN arrived_late TEXT NOT NULL DEFAULT '0' CHECK (trim(arrived_late, '0123456789') = '' AND length(arrived_late) >= 1); -- mined after expires_at, confirmed or not
ALTER TABLE invoices ADD COLUMN arrived_late_dust TEXT NOT NULL DEFAULT '0' CHECK (trim(arrived_late_dust, '0123456789') = '' AND length(arrived_late_dust) >= 1); -- how much of arrived_late is dust
ALTER TABLE invoices ADD COLUMN newest_block BIGINT NOT NULL DEFAULT 0 CHECK (newest_block >= 0); -- no payment is above this block, unless it is orphaned
ALTER TABLE invoices ADD COLUMN newest_log BIGINT NOT NULL DEFAULT 0 CHECK (newest_log >= 0);     -- and none in it is above this log
ALTER TABLE invoices ADD COLUMN due TEXT NOT NULL DEFAULT '0' CHECK (trim(due, '0123456789') = '' AND length(due) >= 1); -- confirmed and mined by expires_at, up to what completed the amount
ALTER TABLE invoices ADD COLUMN due_dust TEXT NOT NULL DEFAULT '0' CHECK (trim(due_dust, '0123456789') = '' AND length(due_dust) >= 1); -- how much of due is dust
ALTER TABLE invoices ADD COLUMN beyond_dust TEXT NOT NULL DEFAULT '0' CHECK (trim(beyond_dust, '0123456789') = '' AND length(beyond_dust) >= 1); -- how much of the rest of amount_paid is dust
ALTER TABLE invoices ADD COLUMN counted_block BIGINT NOT NULL DEFAULT 0 CHECK (counted_block >= 0); -- of the last payment in amount_paid
ALTER TABLE invoices ADD COLUMN counted_log BIGINT NOT NULL DEFAULT 0 CHECK (counted_log >= 0);     -- of the last payment in amount_paid, in its block

UPDATE invoices SET sums_stale = 1 WHERE EXISTS (SELECT 1 FROM payments WHERE payments.invoice_id = invoices.id);

-- In the order of the chain, to read an invoice's newest payments.
DROP INDEX payments_by_invoice;
CREATE INDEX payments_by_invoice ON payments (invoice_id, block_number, log_index) WHERE invoice_id IS NOT NULL;
