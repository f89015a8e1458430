-- Indexes for the filters of lists, each in the order of its list, and when transfers were orphaned.

CREATE INDEX invoices_by_price ON invoices (amount, id);
CREATE INDEX invoices_by_address ON invoices (merchant_address, id);
CREATE INDEX invoices_by_exception ON invoices (exception, id) WHERE exception <> '';
CREATE INDEX invoices_by_merchant_exception ON invoices (merchant_id, exception, id) WHERE exception <> '';

CREATE INDEX payments_of_invoice ON payments (invoice_id, seen_id) WHERE invoice_id IS NOT NULL;
CREATE INDEX payments_by_payer ON payments (from_address, seen_id);
CREATE INDEX payments_by_address ON payments (to_address, seen_id);
CREATE INDEX payments_by_price ON payments (amount, seen_id);
-- By the time of confirmation.
CREATE INDEX payments_by_confirmation ON payments (confirmed_at, seen_id) WHERE invoice_id IS NOT NULL AND confirmed_at IS NOT NULL;
CREATE INDEX payments_by_merchant_confirmation ON payments (merchant_id, confirmed_at, seen_id) WHERE invoice_id IS NOT NULL AND confirmed_at IS NOT NULL;
CREATE INDEX payments_unattributed_by_confirmation ON payments (confirmed_at, seen_id) WHERE invoice_id IS NULL AND confirmed_at IS NOT NULL;

ALTER TABLE payments ADD COLUMN orphaned_at BIGINT; -- when a reorg last orphaned it; null if none did since this column
ALTER TABLE refunds ADD COLUMN orphaned_at BIGINT;  -- when a reorg last orphaned it; null if none did since this column
