-- The last requests of the API that carried a key.

-- +goose Up

-- One row for each request, with neither query, headers nor bodies. The newest of each owner of keys are kept.
CREATE TABLE api_requests (
    id          TEXT    NOT NULL PRIMARY KEY CHECK (id LIKE 'log\_%' ESCAPE '\'), -- log_…; its order is that in which requests ended
    merchant_id TEXT    NOT NULL CHECK (length(merchant_id) <= 64),               -- owner of the key; empty for the operator
    key_id      TEXT    NOT NULL CHECK (length(key_id) <= 64),                    -- empty without a key, at a development service
    at          BIGINT  NOT NULL,                                                 -- Unix milliseconds: when the request began
    method      TEXT    NOT NULL CHECK (length(method) <= 16),
    route       TEXT    NOT NULL CHECK (length(route) <= 200),                    -- path with names of variables, such as /api/invoices/{id}
    path        TEXT    NOT NULL CHECK (length(path) <= 200),                     -- without keys
    status      INTEGER NOT NULL CHECK (status BETWEEN 100 AND 599),
    code        TEXT    NOT NULL CHECK (length(code) <= 64),                      -- of the problem; empty without one
    detail      TEXT    NOT NULL CHECK (length(detail) <= 500),                   -- of the problem, without keys
    duration    BIGINT  NOT NULL CHECK (duration >= 0),                           -- milliseconds
    client      TEXT    NOT NULL CHECK (length(client) <= 64),                    -- address
    request_id  TEXT    NOT NULL CHECK (length(request_id) <= 64),
    idempotent  INTEGER CHECK (idempotent IN (0, 1))                              -- 1 if there was an Idempotency-Key; null where none is taken
);
CREATE INDEX api_requests_by_merchant ON api_requests (merchant_id, id);
CREATE INDEX api_requests_by_key ON api_requests (key_id, id);
CREATE INDEX api_requests_failed ON api_requests (id) WHERE status >= 400;
CREATE INDEX api_requests_broken ON api_requests (id) WHERE status >= 500;
