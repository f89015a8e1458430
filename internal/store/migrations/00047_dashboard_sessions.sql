-- Sessions of people at the dashboard.

-- +goose Up

-- One for each browser that is signed in. A session that ends is deleted.
CREATE TABLE sessions (
    id           TEXT   PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 64),
    token_hash   TEXT   NOT NULL UNIQUE CHECK (length(token_hash) = 64),      -- SHA-256 of the cookie's token, in hex
    key_id       TEXT   NOT NULL CHECK (length(key_id) <= 64),                -- of the person's key; empty at a service that is open to all
    merchant_id  TEXT   CHECK (length(merchant_id) BETWEEN 1 AND 64),         -- that the key belongs to; null for the operator
    client       TEXT   NOT NULL CHECK (length(client) <= 200),               -- address from which the person signed in
    browser      TEXT   NOT NULL CHECK (length(browser) <= 200),              -- what the browser called itself then
    language     TEXT   NOT NULL DEFAULT '' CHECK (length(language) <= 20),   -- that the person chose, such as de; empty for the browser's
    created_at   BIGINT NOT NULL,                                             -- Unix seconds
    confirmed_at BIGINT NOT NULL,                                             -- Unix seconds: when the person last proved to hold the key
    used_at      BIGINT NOT NULL,                                             -- Unix seconds, up to a minute late
    expires_at   BIGINT NOT NULL                                              -- Unix seconds: the end, however much it is used
);
CREATE INDEX sessions_by_key ON sessions (key_id, id);
CREATE INDEX sessions_by_merchant ON sessions (merchant_id, id);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);

-- Links that sign in once. One that was used is deleted.
CREATE TABLE sign_in_links (
    token_hash TEXT   PRIMARY KEY CHECK (length(token_hash) = 64), -- SHA-256 of the link's token, in hex
    key_id     TEXT   NOT NULL CHECK (length(key_id) <= 64),       -- of the person who signs in
    expires_at BIGINT NOT NULL                                     -- Unix seconds
);
CREATE INDEX sign_in_links_by_expiry ON sign_in_links (expires_at);
