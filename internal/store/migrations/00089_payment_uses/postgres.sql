-- What sqlite.sql does, while replicas of the previous release write. An index that a failed attempt left is made anew.

ALTER TABLE payments ADD COLUMN IF NOT EXISTS use TEXT COLLATE "C" -- the use of the payment; null if a program of the previous release inserted it
    CHECK (use IN ('undecided', 'counted', 'refunding', 'refunded', 'dismissed'));
DROP INDEX CONCURRENTLY IF EXISTS payments_of_unknown_use;
CREATE INDEX CONCURRENTLY payments_of_unknown_use ON payments (seen_id) WHERE use IS NULL;
