-- What sqlite.sql does, while replicas of the previous release write. An index that a failed attempt left is made anew.

ALTER TABLE invoices ADD COLUMN IF NOT EXISTS item TEXT -- kind of the inbox item that it is; null if it needs no decision
    CHECK (item IN ('underpaid', 'overpaid', 'late', 'duplicate'));
ALTER TABLE payments ADD COLUMN IF NOT EXISTS item TEXT -- kind of the item in the operator's inbox; null if it needs no decision
    CHECK (item IN ('unattributed', 'claimed'));
ALTER TABLE unattributed ADD COLUMN IF NOT EXISTS item TEXT -- kind of the item in the merchant's inbox; null if it needs no decision
    CHECK (item IN ('unattributed', 'claimed'));
ALTER TABLE refund_records ADD COLUMN IF NOT EXISTS item TEXT -- kind of the item that it is until it expires; null if it needs no decision
    CHECK (item = 'approval');
DROP INDEX CONCURRENTLY IF EXISTS invoices_by_item;
CREATE INDEX CONCURRENTLY invoices_by_item ON invoices (item, id) WHERE item IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS invoices_by_merchant_item;
CREATE INDEX CONCURRENTLY invoices_by_merchant_item ON invoices (merchant_id, item, id) WHERE item IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS payments_by_item;
CREATE INDEX CONCURRENTLY payments_by_item ON payments (item, seen_id) WHERE item IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS unattributed_by_merchant_item;
CREATE INDEX CONCURRENTLY unattributed_by_merchant_item ON unattributed (merchant_id, item, seen_id) WHERE item IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS refund_records_by_item;
CREATE INDEX CONCURRENTLY refund_records_by_item ON refund_records (item, list_id) WHERE item IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS refund_records_by_merchant_item;
CREATE INDEX CONCURRENTLY refund_records_by_merchant_item ON refund_records (merchant_id, item, list_id) WHERE item IS NOT NULL;
