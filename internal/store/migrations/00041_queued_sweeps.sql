-- What the transaction manager is to sweep from deposit addresses.

-- +goose Up

-- What a deposit address holds of a token, from a confirmed payment or a command until the sweep is final.
CREATE TABLE queued_sweeps (
    id           TEXT   NOT NULL PRIMARY KEY,                  -- chain, address and token, joined by slashes
    chain_key    TEXT   NOT NULL,
    address      TEXT   NOT NULL CHECK (length(address) = 42), -- the deposit address
    token        TEXT   NOT NULL CHECK (length(token) = 42),   -- the zero address for the network's coin
    merchant_id  TEXT   NOT NULL REFERENCES merchants (id),    -- of the invoice
    amount       TEXT   NOT NULL CHECK (length(amount) BETWEEN 1 AND 78 AND trim(amount, '0123456789') = ''), -- deposit_balances.unswept; 0 if nothing of the token is recorded
    by_policy    BIGINT NOT NULL CHECK (by_policy IN (0, 1)),  -- 1: the token is the invoice's, so that the chain's policy applies; 0: swept on command alone
    queued_at    BIGINT NOT NULL,                              -- Unix seconds: block time of the first payment, or when it was requested
    requested_at BIGINT,                                       -- Unix seconds: when a command last asked for it; null if none did
    tx_id        TEXT   REFERENCES chain_txs (id),             -- that carries it; null while none does
    failures     BIGINT NOT NULL DEFAULT 0 CHECK (failures >= 0), -- final transactions that did not sweep it
    retry_at     BIGINT,                                       -- Unix seconds: it is not sent before; null if it may be sent
    FOREIGN KEY (chain_key, address) REFERENCES deposits (chain_key, address),
    CHECK (by_policy = 1 OR requested_at IS NOT NULL OR amount <> '0')
);
-- The largest first, for each merchant.
CREATE INDEX queued_sweeps_due ON queued_sweeps (chain_key, token, merchant_id, length(amount), amount) WHERE by_policy = 1 AND tx_id IS NULL AND retry_at IS NULL;
CREATE INDEX queued_sweeps_requested ON queued_sweeps (chain_key, requested_at, id) WHERE requested_at IS NOT NULL AND tx_id IS NULL AND retry_at IS NULL;
CREATE INDEX queued_sweeps_by_tx ON queued_sweeps (tx_id) WHERE tx_id IS NOT NULL;
CREATE INDEX queued_sweeps_in_flight ON queued_sweeps (chain_key) WHERE tx_id IS NOT NULL;
CREATE INDEX queued_sweeps_failed ON queued_sweeps (chain_key, retry_at) WHERE retry_at IS NOT NULL;
CREATE INDEX queued_sweeps_by_chain ON queued_sweeps (chain_key, id);
CREATE INDEX queued_sweeps_by_merchant ON queued_sweeps (chain_key, merchant_id, id);

INSERT INTO queued_sweeps (id, chain_key, address, token, merchant_id, amount, by_policy, queued_at)
    SELECT held.chain_key || '/' || held.address || '/' || held.token, held.chain_key, held.address, held.token, deposits.merchant_id, held.unswept,
        CASE WHEN held.token = invoices.token THEN 1 ELSE 0 END, held.since
    FROM deposit_balances AS held JOIN deposits ON deposits.chain_key = held.chain_key AND deposits.address = held.address
    JOIN invoices ON invoices.id = deposits.invoice_id WHERE held.since IS NOT NULL;
