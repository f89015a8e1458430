-- What the service was configured with is remembered, so that a changed configuration is compared with it.

CREATE TABLE known_chains (
    chain_key    TEXT   PRIMARY KEY,                            -- the chain's key
    id_key       TEXT   NOT NULL,                               -- the key that ids of its payments, refunds and sweeps are made of: its first key
    chain_id     BIGINT NOT NULL,                               -- its chain id, of EIP-155
    genesis      TEXT   CHECK (length(genesis) = 66),           -- hash of the block genesis_number; null until a node was asked
    genesis_number BIGINT CHECK (genesis_number >= 0),          -- 0, or startBlock if the nodes have no block 0
    configured   BIGINT NOT NULL CHECK (configured IN (0, 1)),  -- 1 if the newest revision configures it
    retired_at   BIGINT,                                        -- when an operator retired it; null if it is in use
    created_at   BIGINT NOT NULL,                               -- when it was first configured, in Unix seconds
    CHECK ((genesis IS NULL) = (genesis_number IS NULL))
);

CREATE TABLE known_tokens (
    chain_key    TEXT   NOT NULL REFERENCES known_chains (chain_key), -- the chain
    address      TEXT   NOT NULL,                               -- contract
    currency     TEXT   NOT NULL,                               -- code
    decimals     BIGINT NOT NULL CHECK (decimals >= 0),         -- of a minor unit
    configured   BIGINT NOT NULL CHECK (configured IN (0, 1)),  -- 1 if the newest revision configures it
    first_block  BIGINT CHECK (first_block >= 0),               -- first block that was read for it; null if the chain was not read before
    last_block   BIGINT CHECK (last_block >= 0),                -- last block that was read for it, if it is retired; null if it is read
    missed_through BIGINT CHECK (missed_through >= 0),          -- no invoices in it are taken before the gap is filled up to this block; null without one
    created_at   BIGINT NOT NULL,                               -- when it was first configured, in Unix seconds
    PRIMARY KEY (chain_key, address)
);

CREATE TABLE known_contracts (
    chain_key    TEXT   NOT NULL REFERENCES known_chains (chain_key), -- the chain
    kind         TEXT   NOT NULL CHECK (kind IN ('factory', 'relay')), -- deposit factory or authorization relay; registries are in their own table
    address      TEXT   NOT NULL,                               -- contract
    created_at   BIGINT NOT NULL,                               -- when it was first configured, in Unix seconds
    PRIMARY KEY (chain_key, kind, address)
);

CREATE TABLE revisions (
    number       BIGINT PRIMARY KEY CHECK (number > 0),         -- of the configuration of what decides about money, from 1
    hash         TEXT   NOT NULL,                               -- SHA-256 of these settings, in hexadecimal digits
    created_at   BIGINT NOT NULL                                -- when the first replica ran it, in Unix seconds
);

ALTER TABLE chains ADD COLUMN config_revision BIGINT NOT NULL DEFAULT 0; -- revision that replicas must run to write; 0 before the first
