-- What sqlite.sql does, while replicas of the previous release write. An index that a failed attempt left is made anew.

DROP INDEX CONCURRENTLY IF EXISTS payments_unattributed_to;
CREATE INDEX CONCURRENTLY payments_unattributed_to ON payments (to_address, chain_key, block_number) WHERE invoice_id IS NULL;
