-- What sqlite.sql does, while replicas of the previous release write. Rows of before satisfy the wider conditions, and are not examined.

ALTER TABLE refund_records DROP CONSTRAINT IF EXISTS refund_records_item_check,
    ADD CONSTRAINT refund_records_item_check CHECK (item IN ('approval', 'refund_without_payment')) NOT VALID;
ALTER TABLE inbox_decisions DROP CONSTRAINT IF EXISTS inbox_decisions_kind_check,
    ADD CONSTRAINT inbox_decisions_kind_check
        CHECK (kind IN ('unattributed', 'claimed', 'underpaid', 'overpaid', 'late', 'duplicate', 'approval', 'refund_without_payment')) NOT VALID;
DROP INDEX CONCURRENTLY IF EXISTS payments_orphaned_by_seen;
CREATE INDEX CONCURRENTLY payments_orphaned_by_seen ON payments (seen_id) WHERE status = 'orphaned';
