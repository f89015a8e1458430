-- +goose Up

-- Transfers out of settlement addresses above blocks that were never read, which may hold what they pay back. They are decided in the order of the chain.
CREATE TABLE undecided_refunds (
    id               TEXT   NOT NULL PRIMARY KEY,                -- ref_…, of the refund that it may be
    chain_key        TEXT   NOT NULL REFERENCES chains (chain_key),
    tx_hash          TEXT   NOT NULL CHECK (length(tx_hash) = 66),
    ordinal          BIGINT NOT NULL CHECK (ordinal >= 0),       -- of its log within the transaction
    log_index        BIGINT NOT NULL CHECK (log_index >= 0),     -- of its log within the block
    block_number     BIGINT NOT NULL CHECK (block_number >= 0),
    block_hash       TEXT   NOT NULL CHECK (length(block_hash) = 66),
    block_time       BIGINT NOT NULL,                            -- Unix seconds, as the block says
    token            TEXT   NOT NULL CHECK (length(token) = 42),
    currency         TEXT   NOT NULL,
    from_address     TEXT   NOT NULL CHECK (length(from_address) = 42), -- the settlement address
    to_address       TEXT   NOT NULL CHECK (length(to_address) = 42),
    amount           TEXT   NOT NULL CHECK (length(amount) BETWEEN 1 AND 78 AND trim(amount, '0123456789') = '' AND substr(amount, 1, 1) <> '0'), -- minor units
    commitment_id    TEXT   CHECK (length(commitment_id) = 66),  -- which the transaction's calldata ends in, if any
    registry_id      TEXT   CHECK (length(registry_id) = 66),    -- which the registry's Paid event names, if any
    authorization_id TEXT   CHECK (length(authorization_id) = 66), -- nonce of the authorization that made it, if any
    UNIQUE (chain_key, tx_hash, ordinal)
);
CREATE INDEX undecided_refunds_by_place ON undecided_refunds (chain_key, block_number, log_index);
