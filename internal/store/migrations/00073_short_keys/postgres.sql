-- Each new invoice has its place in these anywhere in the index. Short entries make few pages, which memory holds longer, and of
-- which fewer are written whole to the log after a checkpoint. What they replace, migration 74 drops.
DROP INDEX CONCURRENTLY IF EXISTS invoices_by_commitment;
CREATE UNIQUE INDEX CONCURRENTLY invoices_by_commitment ON invoices ((substr(commitment_id, 3, 32)::uuid));

-- The few amounts that are NULL are in it, too: the planner has statistics only of indexes of all rows, and without them would
-- expect very many rows for a key.
DROP INDEX CONCURRENTLY IF EXISTS told_amounts_by_key;
CREATE INDEX CONCURRENTLY told_amounts_by_key ON told_amounts (hashtextextended(amount || merchant_address || chain_key || token, 0), from_block);
ANALYZE told_amounts;

-- Only intents that are not done are looked up by their commitment.
DROP INDEX CONCURRENTLY IF EXISTS intents_undone_by_commitment;
CREATE INDEX CONCURRENTLY intents_undone_by_commitment ON intents (commitment_id) WHERE status <> 'done';
