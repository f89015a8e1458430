-- One schema for SQLite and PostgreSQL. Conventions:
--   identifiers    text, see the identifiers in docs/decisions.md
--   amounts        text, decimal digits in minor units (no column type of both databases holds a uint256)
--   addresses      text, 0x and 40 lower-case hex digits
--   hashes         text, 0x and 64 lower-case hex digits
--   *_at           Unix seconds; *_ms is Unix milliseconds
--   chain_key      the configured key of a chain

-- +goose Up

-- Merchants that own invoices. Their endpoints and secrets are configuration.
CREATE TABLE merchants (
    id         TEXT   NOT NULL PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 64), -- chosen by the merchant
    created_at BIGINT NOT NULL                                                 -- when first seen
);

-- Every address that an invoice ever named: transfers to it are recorded for ever.
CREATE TABLE settlement_addresses (
    chain_key   TEXT   NOT NULL,
    address     TEXT   NOT NULL CHECK (length(address) = 42),
    merchant_id TEXT   NOT NULL REFERENCES merchants (id), -- whose invoice named it; several may share one
    created_at  BIGINT NOT NULL,                           -- when first named
    PRIMARY KEY (chain_key, address, merchant_id)
);

CREATE TABLE invoices (
    id               TEXT   NOT NULL PRIMARY KEY,             -- inv_…; its order is the order of creation
    commitment_id    TEXT   NOT NULL UNIQUE CHECK (length(commitment_id) = 66), -- onChainInvoiceId
    merchant_id      TEXT   NOT NULL REFERENCES merchants (id),
    merchant_address TEXT   NOT NULL CHECK (length(merchant_address) = 42),     -- where the money goes
    chain_key        TEXT   NOT NULL,
    token            TEXT   NOT NULL CHECK (length(token) = 42),                -- contract of the currency
    currency         TEXT   NOT NULL,
    amount           TEXT   NOT NULL CHECK (length(amount) BETWEEN 1 AND 78 AND trim(amount, '0123456789') = '' AND substr(amount, 1, 1) <> '0'),
    transfer_amount  TEXT   CHECK (length(transfer_amount) BETWEEN 1 AND 78 AND trim(transfer_amount, '0123456789') = ''), -- amount with a suffix; null when none was free
    line_items       TEXT   NOT NULL,                          -- JSON array of {label, amount}
    status           TEXT   NOT NULL CHECK (status IN ('draft', 'open', 'paid', 'expired', 'void')),
    exception        TEXT   NOT NULL DEFAULT '' CHECK (exception IN ('', 'underpaid', 'overpaid', 'late', 'duplicate')),
    amount_paid      TEXT   NOT NULL DEFAULT '0' CHECK (trim(amount_paid, '0123456789') = ''),     -- confirmed transfers
    amount_refunded  TEXT   NOT NULL DEFAULT '0' CHECK (trim(amount_refunded, '0123456789') = ''), -- confirmed transfers back
    created_at       BIGINT NOT NULL,
    expires_at       BIGINT NOT NULL,
    settled_tx       TEXT   CHECK (length(settled_tx) = 66),   -- transaction that completed the amount
    settled_at       BIGINT,                                   -- time of that transaction's block
    FOREIGN KEY (chain_key, merchant_address, merchant_id) REFERENCES settlement_addresses (chain_key, address, merchant_id), -- else its payments would go unseen
    CHECK (expires_at > created_at),
    CHECK ((status = 'paid') = (settled_tx IS NOT NULL)),
    CHECK ((settled_tx IS NULL) = (settled_at IS NULL))
);
CREATE INDEX invoices_by_merchant ON invoices (merchant_id, id);
CREATE INDEX invoices_by_status ON invoices (status, id);
CREATE INDEX invoices_by_merchant_status ON invoices (merchant_id, status, id);
CREATE INDEX invoices_expiring ON invoices (chain_key, expires_at) WHERE status = 'open';
CREATE INDEX invoices_by_amount ON invoices (merchant_address, amount) WHERE status = 'open';
CREATE INDEX invoices_closed_by_transfer_amount ON invoices (merchant_address, transfer_amount) WHERE status <> 'open';
-- A transfer amount names one open invoice and no other.
CREATE UNIQUE INDEX invoices_open_transfer_amount ON invoices (merchant_address, transfer_amount, chain_key, token) WHERE status = 'open';

-- Creates that may be repeated with the same Idempotency-Key.
CREATE TABLE idempotency_keys (
    scope        TEXT   NOT NULL,                            -- who called; keys of two callers never meet
    idem_key     TEXT   NOT NULL CHECK (length(idem_key) BETWEEN 1 AND 255),
    request_hash TEXT   NOT NULL,                            -- of what was asked for, to refuse another request
    invoice_id   TEXT   NOT NULL REFERENCES invoices (id),   -- the first answer
    created_at   BIGINT NOT NULL,
    PRIMARY KEY (scope, idem_key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

-- How far each chain is read, and how far it is final.
CREATE TABLE chains (
    chain_key        TEXT   NOT NULL PRIMARY KEY,
    indexed_number   BIGINT NOT NULL CHECK (indexed_number >= 0),
    indexed_hash     TEXT   NOT NULL,
    indexed_time     BIGINT NOT NULL,
    confirmed_number BIGINT NOT NULL CHECK (confirmed_number >= 0),
    confirmed_hash   TEXT   NOT NULL,
    confirmed_time   BIGINT NOT NULL,
    halted           TEXT   NOT NULL DEFAULT '',             -- why the indexer stopped; empty while it runs
    CHECK (confirmed_number <= indexed_number)
);

-- Headers of the indexed blocks that are not final, and of some final ones below them.
CREATE TABLE blocks (
    chain_key   TEXT   NOT NULL REFERENCES chains (chain_key),
    number      BIGINT NOT NULL,
    hash        TEXT   NOT NULL,
    parent_hash TEXT   NOT NULL,
    block_time  BIGINT NOT NULL,
    PRIMARY KEY (chain_key, number)
);

-- Every transfer of a watched token to a settlement address.
CREATE TABLE payments (
    id           TEXT   NOT NULL PRIMARY KEY,                -- pay_…, a hash of chain, transaction and ordinal
    seen_id      TEXT   NOT NULL UNIQUE,                     -- orders the payments by when they were first seen
    chain_key    TEXT   NOT NULL REFERENCES chains (chain_key),
    tx_hash      TEXT   NOT NULL CHECK (length(tx_hash) = 66),
    ordinal      BIGINT NOT NULL CHECK (ordinal >= 0),       -- of the log within its transaction
    log_index    BIGINT NOT NULL CHECK (log_index >= 0),     -- of the log within its block
    block_number BIGINT NOT NULL CHECK (block_number >= 0),
    block_hash   TEXT   NOT NULL CHECK (length(block_hash) = 66),
    block_time   BIGINT NOT NULL,
    token        TEXT   NOT NULL CHECK (length(token) = 42),
    currency     TEXT   NOT NULL,
    from_address TEXT   NOT NULL CHECK (length(from_address) = 42),
    to_address   TEXT   NOT NULL CHECK (length(to_address) = 42),
    amount       TEXT   NOT NULL CHECK (length(amount) BETWEEN 1 AND 78 AND trim(amount, '0123456789') = '' AND substr(amount, 1, 1) <> '0'),
    commitment_id TEXT  CHECK (length(commitment_id) = 66),  -- which the transaction's calldata ends in, if any
    status       TEXT   NOT NULL CHECK (status IN ('pending', 'confirmed', 'orphaned')),
    invoice_id   TEXT   REFERENCES invoices (id),            -- null while not attributed
    merchant_id  TEXT   REFERENCES merchants (id),           -- of that invoice
    method       TEXT   CHECK (method IN ('registry', 'authorization', 'calldata', 'transfer_amount', 'amount')), -- how it was attributed
    observed_at  BIGINT NOT NULL,
    confirmed_at BIGINT,
    UNIQUE (chain_key, tx_hash, ordinal),
    CHECK ((status = 'confirmed') = (confirmed_at IS NOT NULL)),
    CHECK ((invoice_id IS NULL) = (merchant_id IS NULL)),
    CHECK ((invoice_id IS NULL) = (method IS NULL))
);
CREATE INDEX payments_unfinal ON payments (chain_key, block_number) WHERE status = 'pending';
CREATE INDEX payments_by_invoice ON payments (invoice_id);
CREATE INDEX payments_by_pair ON payments (from_address, to_address, chain_key, block_number);
CREATE INDEX payments_by_receiver ON payments (to_address, amount, seen_id);
CREATE INDEX payments_attributed ON payments (seen_id) WHERE invoice_id IS NOT NULL;
CREATE INDEX payments_by_merchant ON payments (merchant_id, seen_id);
CREATE INDEX payments_by_chain ON payments (chain_key, seen_id) WHERE invoice_id IS NOT NULL;
CREATE INDEX payments_by_merchant_chain ON payments (merchant_id, chain_key, seen_id);

-- Every transfer from a settlement address back to the account that made a payment.
CREATE TABLE refunds (
    id           TEXT   NOT NULL PRIMARY KEY,                -- ref_…, a hash of chain, transaction and ordinal
    chain_key    TEXT   NOT NULL REFERENCES chains (chain_key),
    tx_hash      TEXT   NOT NULL CHECK (length(tx_hash) = 66),
    ordinal      BIGINT NOT NULL CHECK (ordinal >= 0),
    log_index    BIGINT NOT NULL CHECK (log_index >= 0),
    block_number BIGINT NOT NULL CHECK (block_number >= 0),
    block_hash   TEXT   NOT NULL CHECK (length(block_hash) = 66),
    block_time   BIGINT NOT NULL,
    token        TEXT   NOT NULL CHECK (length(token) = 42),
    currency     TEXT   NOT NULL,
    from_address TEXT   NOT NULL CHECK (length(from_address) = 42),
    to_address   TEXT   NOT NULL CHECK (length(to_address) = 42),
    amount       TEXT   NOT NULL CHECK (length(amount) BETWEEN 1 AND 78 AND trim(amount, '0123456789') = '' AND substr(amount, 1, 1) <> '0'),
    commitment_id TEXT  CHECK (length(commitment_id) = 66),  -- which the transaction's calldata ends in, if any
    status       TEXT   NOT NULL CHECK (status IN ('pending', 'confirmed', 'orphaned')),
    payment_id   TEXT   NOT NULL REFERENCES payments (id),   -- what is paid back
    invoice_id   TEXT   NOT NULL REFERENCES invoices (id),
    merchant_id  TEXT   NOT NULL REFERENCES merchants (id),
    observed_at  BIGINT NOT NULL,
    confirmed_at BIGINT,
    UNIQUE (chain_key, tx_hash, ordinal),
    CHECK ((status = 'confirmed') = (confirmed_at IS NOT NULL))
);
CREATE INDEX refunds_unfinal ON refunds (chain_key, block_number) WHERE status = 'pending';
CREATE INDEX refunds_by_payment ON refunds (payment_id);
CREATE INDEX refunds_by_invoice ON refunds (invoice_id);

-- What merchants are told. A row is written in the transaction that made it true.
CREATE TABLE events (
    id          TEXT   NOT NULL PRIMARY KEY,                 -- evt_…
    type        TEXT   NOT NULL CHECK (type IN ('invoice.created', 'invoice.paid', 'invoice.expired', 'payment.received', 'payment.refunded')),
    subject     TEXT   NOT NULL,                             -- what it is about; told once
    merchant_id TEXT   NOT NULL REFERENCES merchants (id),
    invoice_id  TEXT   NOT NULL REFERENCES invoices (id),
    body        TEXT   NOT NULL,                             -- the envelope, byte for byte as it is sent
    created_at  BIGINT NOT NULL,
    UNIQUE (subject, type)
);

-- The schedule of deliveries: one for each event of a merchant with an endpoint.
CREATE TABLE deliveries (
    id          TEXT   NOT NULL PRIMARY KEY,                 -- dlv_…, the same at every attempt
    event_id    TEXT   NOT NULL UNIQUE REFERENCES events (id),
    merchant_id TEXT   NOT NULL REFERENCES merchants (id),
    status      TEXT   NOT NULL CHECK (status IN ('pending', 'delivered', 'failed')),
    attempts    BIGINT NOT NULL DEFAULT 0 CHECK (attempts >= 0), -- finished ones
    due_ms      BIGINT NOT NULL,                             -- when the next attempt may start
    deadline_ms BIGINT NOT NULL,                             -- no attempt but the first starts after it
    lease_id    TEXT,                                        -- held by an attempt under way
    lease_ms    BIGINT,                                      -- until when; afterwards anyone may take it
    finished_ms BIGINT,                                      -- when it was delivered or failed
    CHECK ((status = 'pending') = (finished_ms IS NULL)),
    CHECK ((lease_id IS NULL) = (lease_ms IS NULL)),
    CHECK (status = 'pending' OR lease_id IS NULL)
);
CREATE INDEX deliveries_due ON deliveries (due_ms) WHERE status = 'pending';
-- The queues of each merchant: what was never attempted, and what is to be tried again.
CREATE INDEX deliveries_first ON deliveries (merchant_id, due_ms) WHERE status = 'pending' AND attempts = 0;
CREATE INDEX deliveries_retry ON deliveries (merchant_id, due_ms) WHERE status = 'pending' AND attempts > 0;
CREATE INDEX deliveries_leased ON deliveries (lease_id) WHERE lease_id IS NOT NULL;
CREATE INDEX deliveries_in_flight ON deliveries (merchant_id, lease_ms) WHERE lease_id IS NOT NULL;

-- The log of attempts.
CREATE TABLE attempts (
    delivery_id TEXT   NOT NULL REFERENCES deliveries (id),
    number      BIGINT NOT NULL CHECK (number >= 1),
    started_ms  BIGINT NOT NULL,
    duration_ms BIGINT NOT NULL CHECK (duration_ms >= 0),
    status_code BIGINT CHECK (status_code BETWEEN 100 AND 999), -- null when there was no answer
    error       TEXT   NOT NULL DEFAULT '',                  -- why it was not a success
    PRIMARY KEY (delivery_id, number)
);

-- Transfer notices of external providers, each kept once.
CREATE TABLE notices (
    id                TEXT   NOT NULL PRIMARY KEY,           -- ntc_…
    provider          TEXT   NOT NULL,
    type              TEXT   NOT NULL,
    transfer_id       TEXT   NOT NULL,                       -- the provider's id
    amount_text       TEXT   NOT NULL,                       -- as sent, in major units
    provider_currency TEXT   NOT NULL,                       -- as sent
    provider_chain    TEXT   NOT NULL,                       -- as sent
    destination       TEXT   NOT NULL,                       -- as sent
    amount            TEXT,                                  -- minor units; null when the currency is unknown
    currency          TEXT,                                  -- ours; null when unknown
    chain_key         TEXT,                                  -- ours; null when unknown
    address           TEXT,                                  -- of an EVM chain; null otherwise
    payment_id        TEXT   REFERENCES payments (id),       -- the payment that it announced
    received_at       BIGINT NOT NULL,
    UNIQUE (provider, type, transfer_id)
);
CREATE INDEX notices_unlinked ON notices (address, amount) WHERE payment_id IS NULL;
CREATE INDEX notices_by_payment ON notices (payment_id);

-- Transactions of the on-chain writer. A row is written before its first broadcast.
CREATE TABLE chain_txs (
    id          TEXT   NOT NULL PRIMARY KEY,                 -- ctx_…
    chain_key   TEXT   NOT NULL,
    sender      TEXT   NOT NULL CHECK (length(sender) = 42),
    nonce       BIGINT NOT NULL CHECK (nonce >= 0),
    kind        TEXT   NOT NULL CHECK (kind IN ('open', 'close')),
    status      TEXT   NOT NULL CHECK (status IN ('sent', 'mined', 'failed')),
    created_ms  BIGINT NOT NULL,
    UNIQUE (chain_key, sender, nonce)
);
CREATE INDEX chain_txs_sent ON chain_txs (chain_key) WHERE status = 'sent';

-- Every signed form of such a transaction: the first, and those with a higher fee.
CREATE TABLE chain_tx_attempts (
    tx_id       TEXT   NOT NULL REFERENCES chain_txs (id),
    number      BIGINT NOT NULL CHECK (number >= 1),
    tx_hash     TEXT   NOT NULL UNIQUE CHECK (length(tx_hash) = 66),
    raw         TEXT   NOT NULL,                             -- 0x and the signed bytes in hex
    fee_cap     TEXT   NOT NULL,                             -- wei for a unit of gas
    tip_cap     TEXT   NOT NULL,                             -- wei for a unit of gas
    created_ms  BIGINT NOT NULL,
    PRIMARY KEY (tx_id, number)
);

-- What the registry must be told, written in the transaction that caused it.
CREATE TABLE intents (
    id            TEXT   NOT NULL PRIMARY KEY,               -- int_…
    chain_key     TEXT   NOT NULL,
    invoice_id    TEXT   NOT NULL REFERENCES invoices (id),
    commitment_id TEXT   NOT NULL CHECK (length(commitment_id) = 66),
    kind          TEXT   NOT NULL CHECK (kind IN ('open', 'close')),
    status        TEXT   NOT NULL CHECK (status IN ('due', 'sent', 'done')),
    tx_id         TEXT   REFERENCES chain_txs (id),          -- that carries it
    seen_block    BIGINT,                                    -- where its event was seen; done when that is final
    created_at    BIGINT NOT NULL,
    UNIQUE (invoice_id, kind),
    CHECK (status <> 'sent' OR tx_id IS NOT NULL)
);
CREATE INDEX intents_due ON intents (chain_key, id) WHERE status = 'due';
CREATE INDEX intents_unseen ON intents (chain_key) WHERE status = 'sent' AND seen_block IS NULL;
CREATE INDEX intents_by_commitment ON intents (commitment_id);
CREATE INDEX intents_by_tx ON intents (tx_id);
CREATE INDEX intents_seen ON intents (chain_key, seen_block) WHERE status <> 'done';

-- Work that one replica does at a time.
CREATE TABLE leases (
    name     TEXT   NOT NULL PRIMARY KEY,                    -- of the work, such as writer:base
    holder   TEXT   NOT NULL,                                -- of the lease; a random id, never a host
    until_ms BIGINT NOT NULL                                 -- afterwards anyone may take it
);
