-- The indexes that those of migration 73 replace.
ALTER TABLE invoices DROP CONSTRAINT IF EXISTS invoices_commitment_id_key;
DROP INDEX CONCURRENTLY IF EXISTS told_amounts_by_amount;
DROP INDEX CONCURRENTLY IF EXISTS intents_by_commitment;
