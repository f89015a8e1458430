-- What sqlite.sql does, while replicas of the previous release write. An index that a failed attempt left is made anew.

DROP INDEX CONCURRENTLY IF EXISTS invoices_long_lived;
CREATE INDEX CONCURRENTLY invoices_long_lived ON invoices (merchant_id, expires_at, id) WHERE expires_at - created_at > 86400;
DROP INDEX CONCURRENTLY IF EXISTS payments_confirmed_late;
CREATE INDEX CONCURRENTLY payments_confirmed_late ON payments (merchant_id, confirmed_at, block_time, invoice_id) WHERE invoice_id IS NOT NULL AND confirmed_at - block_time > 86400;
