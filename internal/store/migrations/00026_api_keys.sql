-- Keys of the API.

-- +goose Up

CREATE TABLE api_keys (
    id           TEXT   NOT NULL PRIMARY KEY CHECK (id LIKE 'key\_%' ESCAPE '\'), -- key_…; its order is the order of the keys
    name         TEXT   NOT NULL CHECK (length(name) BETWEEN 1 AND 200),          -- what its owner calls it
    hint         TEXT   NOT NULL CHECK (length(hint) BETWEEN 8 AND 16),           -- its beginning, by which its holder recognises it
    hash         TEXT   NOT NULL UNIQUE CHECK (length(hash) = 64),                -- SHA-256 of the key in hexadecimal; the key itself is not stored
    merchant_id  TEXT   CHECK (merchant_id <> ''),                                -- whose objects it gives access to; null for a key of the operator, which gives access to all
    scopes       TEXT   NOT NULL CHECK (scopes <> ''),                            -- what it allows, with spaces between
    created_at   BIGINT NOT NULL,                                                 -- Unix seconds
    expires_at   BIGINT CHECK (expires_at >= created_at),                         -- Unix seconds: from then on it is refused; null if it does not expire
    revoked_at   BIGINT CHECK (revoked_at >= created_at),                         -- Unix seconds: when it was revoked; null if it was not
    last_used_at BIGINT,                                                          -- Unix seconds, up to a minute late: when a request was accepted with it; null if none was
    replaced_by  TEXT   REFERENCES api_keys (id),                                 -- the key that a rotation made in its place; null if it was not rotated
    CHECK (replaced_by <> id),
    CHECK (replaced_by IS NULL OR expires_at IS NOT NULL OR revoked_at IS NOT NULL)
);
CREATE INDEX api_keys_by_merchant ON api_keys (merchant_id, id);

-- One row that each change of api_keys increments, save that of last_used_at. A service that has read keys finds out by it that they have changed.
CREATE TABLE api_key_changes (
    id      BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),       -- there is one row
    version BIGINT NOT NULL CHECK (version >= 0)              -- the number of changes
);
INSERT INTO api_key_changes (id, version) VALUES (1, 0);
