-- A lease is part of its delivery: a row that is inserted, taken and ended with it.

-- +goose Up

ALTER TABLE deliveries ADD COLUMN lease_id TEXT; -- who attempts it until due_ms; null when nobody has taken it since it was scheduled
UPDATE deliveries SET
    lease_id = (SELECT l.lease_id FROM leased l WHERE l.seq = deliveries.seq),
    due_ms   = (SELECT CASE WHEN l.until_ms > deliveries.due_ms THEN l.until_ms ELSE deliveries.due_ms END FROM leased l WHERE l.seq = deliveries.seq)
WHERE seq IN (SELECT seq FROM leased);
DROP TABLE leased;
CREATE INDEX deliveries_leased ON deliveries (merchant_id, due_ms) WHERE lease_id IS NOT NULL;
