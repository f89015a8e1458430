-- What sqlite.sql does, while replicas of the previous release write. An index that a failed attempt left is made anew. The former
-- indexes of amounts stay for these replicas.

ALTER TABLE invoices ADD COLUMN IF NOT EXISTS collection TEXT NOT NULL DEFAULT 'direct' CHECK (collection IN ('direct', 'deposit')); -- how payers pay: at the settlement address, or at an address of the invoice
ALTER TABLE invoices ADD COLUMN IF NOT EXISTS deposit_factory TEXT CHECK (deposit_factory IS NULL OR length(deposit_factory) = 42 AND collection = 'deposit'); -- contract that deposit_address is derived from; null for a draft and without deposit address
ALTER TABLE invoices ADD COLUMN IF NOT EXISTS deposit_address TEXT CHECK (deposit_address IS NULL OR length(deposit_address) = 42 AND coalesce(deposit_factory, '') <> ''); -- where payers pay; null for a draft and for direct invoices; unique per chain in deposits
ALTER TABLE invoices ADD COLUMN IF NOT EXISTS swept_tx TEXT CHECK (swept_tx IS NULL OR length(swept_tx) = 66 AND coalesce(deposit_address, '') <> ''); -- transaction of the newest confirmed sweep of the invoice's token; null without one

ALTER TABLE payments ADD COLUMN IF NOT EXISTS deposit_of TEXT; -- the invoice whose deposit address received it; null at a settlement address. It is in another currency than that invoice's if invoice_id is null
ALTER TABLE payments ADD COLUMN IF NOT EXISTS settles_to TEXT CHECK (settles_to IS NULL OR length(settles_to) = 42 AND coalesce(deposit_of, '') <> ''); -- settlement address of deposit_of, from which it is refunded; null at a settlement address

ALTER TABLE merchant_profiles ADD COLUMN IF NOT EXISTS collection TEXT NOT NULL DEFAULT 'direct' CHECK (collection IN ('direct', 'deposit')); -- of invoices that are created without one

-- Every deposit address of an invoice that was opened: transfers to it and from it are recorded for ever.
CREATE TABLE IF NOT EXISTS deposits (
    chain_key   TEXT   NOT NULL,
    address     TEXT   NOT NULL CHECK (length(address) = 42),
    invoice_id  TEXT   NOT NULL UNIQUE REFERENCES invoices (id),
    merchant_id TEXT   NOT NULL REFERENCES merchants (id),       -- of the invoice
    PRIMARY KEY (address, chain_key)
);

-- What deposit addresses received and what was swept of it, in final blocks. An address that received nothing has no row.
CREATE TABLE IF NOT EXISTS deposit_balances (
    chain_key TEXT   NOT NULL,
    address   TEXT   NOT NULL,
    token     TEXT   NOT NULL CHECK (length(token) = 42),
    received  TEXT   NOT NULL CHECK (length(received) BETWEEN 1 AND 78 AND trim(received, '0123456789') = ''), -- sum of the confirmed payments, counted for the invoice or not
    swept     TEXT   NOT NULL CHECK (length(swept) BETWEEN 1 AND 78 AND trim(swept, '0123456789') = ''),       -- sum of the confirmed sweeps
    unswept   TEXT   NOT NULL CHECK (length(unswept) BETWEEN 1 AND 78 AND trim(unswept, '0123456789') = ''),   -- received less swept, or 0
    since     BIGINT CHECK ((since IS NULL) = (unswept = '0')), -- block time, in Unix seconds, of a payment since which unswept is more than 0; null while it is 0
    PRIMARY KEY (chain_key, address, token),
    FOREIGN KEY (address, chain_key) REFERENCES deposits (address, chain_key)
);
CREATE INDEX IF NOT EXISTS deposit_balances_unswept ON deposit_balances (chain_key, token, since, address) WHERE since IS NOT NULL;

-- Every transfer of a watched token out of a deposit address. It is neither a payment nor a refund.
CREATE TABLE IF NOT EXISTS sweeps (
    id           TEXT   NOT NULL PRIMARY KEY,                -- swp_…, a hash of chain, transaction and ordinal
    chain_key    TEXT   NOT NULL REFERENCES chains (chain_key),
    tx_hash      TEXT   NOT NULL CHECK (length(tx_hash) = 66),
    ordinal      BIGINT NOT NULL CHECK (ordinal >= 0),       -- of the log within its transaction
    log_index    BIGINT NOT NULL CHECK (log_index >= 0),     -- of the log within its block
    block_number BIGINT NOT NULL CHECK (block_number >= 0),
    block_hash   TEXT   NOT NULL CHECK (length(block_hash) = 66),
    block_time   BIGINT NOT NULL,                            -- Unix seconds, as the block says
    token        TEXT   NOT NULL CHECK (length(token) = 42),
    currency     TEXT   NOT NULL,
    from_address TEXT   NOT NULL CHECK (length(from_address) = 42), -- the deposit address
    to_address   TEXT   NOT NULL CHECK (length(to_address) = 42),   -- the settlement address
    amount       TEXT   NOT NULL CHECK (length(amount) BETWEEN 1 AND 78 AND trim(amount, '0123456789') = '' AND substr(amount, 1, 1) <> '0'), -- minor units
    commitment_id TEXT  CHECK (length(commitment_id) = 66),  -- which the transaction's calldata ends in, if any
    registry_id  TEXT   CHECK (length(registry_id) = 66),    -- which a registry's Paid event names, if any
    authorization_id TEXT CHECK (length(authorization_id) = 66), -- nonce of the authorization that made it, if any
    status       TEXT   NOT NULL CHECK (status IN ('pending', 'confirmed', 'orphaned')),
    observed_at  BIGINT NOT NULL,                            -- when it was first seen
    confirmed_at BIGINT,                                     -- when it became final; null unless it is confirmed
    orphaned_at  BIGINT,                                     -- when a reorg last orphaned it; null if none did
    invoice_id   TEXT   NOT NULL REFERENCES invoices (id),   -- of the deposit address
    UNIQUE (chain_key, tx_hash, ordinal),
    FOREIGN KEY (from_address, chain_key) REFERENCES deposits (address, chain_key),
    CHECK ((status = 'confirmed') = (confirmed_at IS NOT NULL))
);
CREATE INDEX IF NOT EXISTS sweeps_unfinal ON sweeps (chain_key, block_number) WHERE status = 'pending';
CREATE INDEX IF NOT EXISTS sweeps_orphaned ON sweeps (chain_key, block_number) WHERE status = 'orphaned';
CREATE INDEX IF NOT EXISTS sweeps_by_invoice ON sweeps (invoice_id, token, block_number, log_index) WHERE status = 'confirmed';

-- To find what a transfer from a settlement address refunds.
DROP INDEX CONCURRENTLY IF EXISTS payments_by_refund_pair;
CREATE INDEX CONCURRENTLY payments_by_refund_pair ON payments (from_address, settles_to, chain_key, block_number) WHERE settles_to IS NOT NULL;

-- Amounts identify direct invoices alone.
DROP INDEX CONCURRENTLY IF EXISTS invoices_open_by_amount_direct;
CREATE INDEX CONCURRENTLY invoices_open_by_amount_direct ON invoices (amount, merchant_address, chain_key, token) WHERE status = 'open' AND collection = 'direct';
DROP INDEX CONCURRENTLY IF EXISTS invoices_closed_by_amount_direct;
CREATE INDEX CONCURRENTLY invoices_closed_by_amount_direct ON invoices (amount, merchant_address, closed_block) WHERE status <> 'open' AND collection = 'direct';
DROP INDEX CONCURRENTLY IF EXISTS invoices_by_tolerance_direct;
CREATE INDEX CONCURRENTLY invoices_by_tolerance_direct ON invoices (merchant_address, chain_key, token, length(amount), amount) WHERE status = 'open' AND tolerance <> '0' AND collection = 'direct';
DROP INDEX CONCURRENTLY IF EXISTS invoices_closed_by_tolerance_direct;
CREATE INDEX CONCURRENTLY invoices_closed_by_tolerance_direct ON invoices (merchant_address, chain_key, token, closed_block) WHERE status <> 'open' AND tolerance <> '0' AND collection = 'direct';
