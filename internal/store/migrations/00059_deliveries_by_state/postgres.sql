-- What sqlite.sql does, while replicas of the previous release write. An index that a failed attempt left is made anew.

DROP INDEX CONCURRENTLY IF EXISTS deliveries_by_merchant;
CREATE INDEX CONCURRENTLY deliveries_by_merchant ON deliveries (merchant_id, seq);
DROP INDEX CONCURRENTLY IF EXISTS delivered_deliveries;
CREATE INDEX CONCURRENTLY delivered_deliveries ON finished_deliveries (seq) WHERE status = 'delivered';
DROP INDEX CONCURRENTLY IF EXISTS delivered_deliveries_by_merchant;
CREATE INDEX CONCURRENTLY delivered_deliveries_by_merchant ON finished_deliveries (merchant_id, seq) WHERE status = 'delivered';
