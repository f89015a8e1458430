-- Who changed what, in a chain of hashes. The next migration makes the entries append-only.

-- +goose Up

-- An entry for each change that somebody asked for, written in the transaction of the change. docs/audit.md describes the hash.
CREATE TABLE audit_entries (
    seq         BIGINT NOT NULL PRIMARY KEY CHECK (seq > 0),        -- 1 for the first entry; without gaps
    at          BIGINT NOT NULL,                                    -- when the change was made
    actor       TEXT   NOT NULL CHECK (length(actor) BETWEEN 1 AND 200), -- id of a key, config, open, service, or cli: and a user
    client      TEXT   NOT NULL CHECK (length(client) <= 200),      -- address of the client; empty for a command
    request_id  TEXT   NOT NULL CHECK (length(request_id) <= 200),  -- empty for a command
    merchant_id TEXT   CHECK (length(merchant_id) BETWEEN 1 AND 64), -- who may read the entry besides the operator; it may own nothing yet
    action      TEXT   NOT NULL CHECK (length(action) BETWEEN 1 AND 200), -- kind of the change, such as endpoint.update
    object      TEXT   NOT NULL CHECK (length(object) <= 200),      -- identifier of what was changed
    before      TEXT   NOT NULL CHECK (length(before) <= 8192),     -- JSON without secrets; empty if there was nothing
    after       TEXT   NOT NULL CHECK (length(after) <= 8192),      -- JSON without secrets; empty if there is nothing
    prev_hash   TEXT   NOT NULL CHECK (length(prev_hash) = 64),     -- hash of the entry before; zeros for the first
    hash        TEXT   NOT NULL UNIQUE CHECK (length(hash) = 64)    -- SHA-256 of the fields above, in hex
);
CREATE INDEX audit_entries_by_merchant ON audit_entries (merchant_id, seq) WHERE merchant_id IS NOT NULL;
CREATE INDEX audit_entries_by_action ON audit_entries (action, seq);

-- The newest entry. Its row is locked while the next one is written.
CREATE TABLE audit_head (
    id   INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),    -- there is one row
    seq  BIGINT  NOT NULL CHECK (seq >= 0),              -- of the newest entry; 0 if there is none
    hash TEXT    NOT NULL CHECK (length(hash) = 64)      -- of the newest entry; zeros if there is none
);
INSERT INTO audit_head VALUES (1, 0, '0000000000000000000000000000000000000000000000000000000000000000');
