-- The Idempotency-Keys of submissions of refunds, and of erasures.

ALTER TABLE refund_submissions ADD COLUMN idem_scope TEXT; -- who made it with an Idempotency-Key
ALTER TABLE refund_submissions ADD COLUMN idem_key TEXT CHECK (length(idem_key) BETWEEN 1 AND 255); -- that key, of which a refund has one submission for each scope
ALTER TABLE refund_submissions ADD COLUMN request_hash TEXT CHECK (length(request_hash) = 66); -- of what was asked for, to refuse another request with the key

-- It is never deleted: a request that is repeated late must not erase newer invoices. A key may name the customer, so it is not stored.
CREATE TABLE erasure_keys (
    key_hash     TEXT   NOT NULL PRIMARY KEY CHECK (length(key_hash) = 66), -- of the key and its scope
    request_hash TEXT   NOT NULL CHECK (length(request_hash) = 66),         -- of the key, its scope and what was asked for, to refuse another request with the key
    erasure_id   TEXT   NOT NULL                                            -- that the request began, or that was running for the customer
);
