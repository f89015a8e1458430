-- The indexes that those of migration 73 replace. Whoever reads invoices for long delays the first, and it all others, so it ends after 5 s.
DO $$ BEGIN SET LOCAL lock_timeout = 5000; ALTER TABLE invoices DROP CONSTRAINT IF EXISTS invoices_commitment_id_key; END $$;
DROP INDEX CONCURRENTLY IF EXISTS told_amounts_by_amount;
DROP INDEX CONCURRENTLY IF EXISTS intents_by_commitment;
