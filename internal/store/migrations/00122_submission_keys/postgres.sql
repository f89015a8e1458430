-- The Idempotency-Keys of submissions of refunds. sqlite.sql does the same.

ALTER TABLE refund_submissions ADD COLUMN idem_scope TEXT COLLATE "C"; -- who made it with an Idempotency-Key
ALTER TABLE refund_submissions ADD COLUMN idem_key TEXT COLLATE "C" CHECK (length(idem_key) BETWEEN 1 AND 255); -- that key, of which a refund has one submission for each scope
ALTER TABLE refund_submissions ADD COLUMN request_hash TEXT COLLATE "C" CHECK (length(request_hash) = 66); -- of what was asked for, to refuse another request with the key
