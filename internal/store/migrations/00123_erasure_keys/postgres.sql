-- The Idempotency-Keys of erasures. sqlite.sql does the same.

-- It is never deleted: a request that is repeated late must not erase newer invoices. A key may name the customer, so it is not stored.
CREATE TABLE erasure_keys (
    key_hash     TEXT COLLATE "C" NOT NULL PRIMARY KEY CHECK (length(key_hash) = 66), -- of the key and its scope
    request_hash TEXT COLLATE "C" NOT NULL CHECK (length(request_hash) = 66),         -- of the key, its scope and what was asked for, to refuse another request with the key
    erasure_id   TEXT COLLATE "C" NOT NULL                                            -- that the request began, or that was running for the customer
);
