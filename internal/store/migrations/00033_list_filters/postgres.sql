-- What sqlite.sql does, while replicas of the previous release write. An index that a failed attempt left is made anew.

DROP INDEX CONCURRENTLY IF EXISTS invoices_by_price;
CREATE INDEX CONCURRENTLY invoices_by_price ON invoices (amount, id);
DROP INDEX CONCURRENTLY IF EXISTS invoices_by_address;
CREATE INDEX CONCURRENTLY invoices_by_address ON invoices (merchant_address, id);
DROP INDEX CONCURRENTLY IF EXISTS invoices_by_exception;
CREATE INDEX CONCURRENTLY invoices_by_exception ON invoices (exception, id) WHERE exception <> '';
DROP INDEX CONCURRENTLY IF EXISTS invoices_by_merchant_exception;
CREATE INDEX CONCURRENTLY invoices_by_merchant_exception ON invoices (merchant_id, exception, id) WHERE exception <> '';

DROP INDEX CONCURRENTLY IF EXISTS payments_of_invoice;
CREATE INDEX CONCURRENTLY payments_of_invoice ON payments (invoice_id, seen_id) WHERE invoice_id IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS payments_by_payer;
CREATE INDEX CONCURRENTLY payments_by_payer ON payments (from_address, seen_id);
DROP INDEX CONCURRENTLY IF EXISTS payments_by_address;
CREATE INDEX CONCURRENTLY payments_by_address ON payments (to_address, seen_id);
DROP INDEX CONCURRENTLY IF EXISTS payments_by_price;
CREATE INDEX CONCURRENTLY payments_by_price ON payments (amount, seen_id);
-- By the time of confirmation.
DROP INDEX CONCURRENTLY IF EXISTS payments_by_confirmation;
CREATE INDEX CONCURRENTLY payments_by_confirmation ON payments (confirmed_at, seen_id) WHERE invoice_id IS NOT NULL AND confirmed_at IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS payments_by_merchant_confirmation;
CREATE INDEX CONCURRENTLY payments_by_merchant_confirmation ON payments (merchant_id, confirmed_at, seen_id) WHERE invoice_id IS NOT NULL AND confirmed_at IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS payments_unattributed_by_confirmation;
CREATE INDEX CONCURRENTLY payments_unattributed_by_confirmation ON payments (confirmed_at, seen_id) WHERE invoice_id IS NULL AND confirmed_at IS NOT NULL;

ALTER TABLE payments ADD COLUMN IF NOT EXISTS orphaned_at BIGINT; -- when a reorg last orphaned it; null if none did since this column
ALTER TABLE refunds ADD COLUMN IF NOT EXISTS orphaned_at BIGINT;  -- when a reorg last orphaned it; null if none did since this column
