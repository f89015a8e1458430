-- What sqlite.sql does, while replicas of the previous release write. An index that a failed attempt left is made anew.

DROP INDEX CONCURRENTLY IF EXISTS payments_by_authorization;
CREATE INDEX CONCURRENTLY payments_by_authorization ON payments (authorization_id, from_address) WHERE authorization_id IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS refunds_orphaned;
CREATE INDEX CONCURRENTLY refunds_orphaned ON refunds (orphaned_at) WHERE status = 'orphaned';
