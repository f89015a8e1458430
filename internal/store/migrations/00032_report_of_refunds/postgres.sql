-- What sqlite.sql does, while replicas of the previous release write. An index that a failed attempt left is made anew.

DROP INDEX CONCURRENTLY IF EXISTS refunds_by_confirmation;
CREATE INDEX CONCURRENTLY refunds_by_confirmation ON refunds (confirmed_at, id) WHERE confirmed_at IS NOT NULL;
