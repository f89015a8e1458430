-- What quittance recover found on chain of a past that the database has lost. sqlite.sql does the same.

-- A recovery, while it is under way and since the last one: where it began to read a chain.
CREATE TABLE recovery_chains (
    chain_key  TEXT COLLATE "C" NOT NULL PRIMARY KEY CHECK (chain_key <> ''),
    from_block BIGINT NOT NULL CHECK (from_block >= 0)               -- the first block that the backup had not read
);

CREATE TABLE lost_invoices (
    chain_key     TEXT COLLATE "C" NOT NULL CHECK (chain_key <> ''),
    commitment_id TEXT COLLATE "C" NOT NULL PRIMARY KEY CHECK (length(commitment_id) = 66), -- of an invoice that the database does not have or, if closed is 1, has as open
    registry      TEXT COLLATE "C" NOT NULL CHECK (length(registry) = 42),                  -- that announced it
    block_number  BIGINT NOT NULL CHECK (block_number >= 0),                      -- where it did so
    closed        BIGINT NOT NULL CHECK (closed IN (0, 1))                        -- 1: closed before it expired, so that a person decides what becomes of the open invoice
);

-- Addresses of which the database lost the invoices. Payments to them are recorded without an invoice.
CREATE TABLE lost_addresses (
    chain_key     TEXT COLLATE "C" NOT NULL CHECK (chain_key <> ''),
    address       TEXT COLLATE "C" NOT NULL CHECK (length(address) = 42),
    commitment_id TEXT COLLATE "C" CHECK (length(commitment_id) = 66),    -- of the lost invoice that it is the deposit address of; null for a settlement address
    PRIMARY KEY (address, chain_key)
);
