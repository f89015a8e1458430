-- Commitments that were closed in a past which the database lost.

ALTER TABLE lost_invoices ADD COLUMN closed_block BIGINT CHECK (closed_block >= 0); -- where the registry closed the commitment; null if it did not, or a reorg dropped that block
ALTER TABLE lost_invoices ADD COLUMN closed_at BIGINT;                              -- time of that block

-- closed is 1 for an open invoice of which it is still to be decided whether it becomes void. Meanwhile its closed_block in
-- invoices is set: transfers above that block do not pay it, and it does not expire.
CREATE INDEX lost_invoices_closed ON lost_invoices (chain_key, closed_block) WHERE closed = 1;

-- Transfers out of settlement addresses in the blocks that a recovery has read. The database may have lost that they refund
-- a payment, so refunds of payments that they may have refunded cannot be sent. A person deletes a row by checking it.
CREATE TABLE unrecognized_transfers (
    id           TEXT   NOT NULL PRIMARY KEY,                      -- of the refund that the transfer would be
    chain_key    TEXT   NOT NULL CHECK (chain_key <> ''),
    tx_hash      TEXT   NOT NULL CHECK (length(tx_hash) = 66),
    block_number BIGINT NOT NULL CHECK (block_number >= 0),        -- that held it when it was first seen
    token        TEXT   NOT NULL CHECK (length(token) = 42),
    currency     TEXT   NOT NULL,                                  -- of the token
    from_address TEXT   NOT NULL CHECK (length(from_address) = 42), -- the settlement address
    to_address   TEXT   NOT NULL CHECK (length(to_address) = 42),
    amount       TEXT   NOT NULL CHECK (length(amount) BETWEEN 1 AND 78 AND trim(amount, '0123456789') = '') -- in minor units
);
CREATE INDEX unrecognized_transfers_by_sender ON unrecognized_transfers (from_address, chain_key, token);
