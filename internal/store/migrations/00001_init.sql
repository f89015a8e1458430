-- One schema for SQLite and PostgreSQL. Conventions:
--   identifiers    text, see the identifiers in docs/decisions/0001-identifiers.md
--   amounts        text, decimal digits in minor units (no column type of both databases holds a uint256)
--   addresses      text, 0x and 40 lower-case hex digits
--   hashes         text, 0x and 64 lower-case hex digits
--   *_at           Unix seconds; *_ms is Unix milliseconds
--   chain_key      the configured key of a chain

-- +goose Up

-- Merchants that own invoices.
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
    tolerance        TEXT   NOT NULL DEFAULT '0' CHECK (trim(tolerance, '0123456789') = '' AND length(tolerance) >= 1), -- how much less than the amount is enough
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
    CHECK (length(tolerance) < length(amount) OR length(tolerance) = length(amount) AND tolerance < amount),
    CHECK (expires_at > created_at),
    CHECK ((status = 'paid') = (settled_tx IS NOT NULL)),
    CHECK ((settled_tx IS NULL) = (settled_at IS NULL))
);
CREATE INDEX invoices_by_merchant ON invoices (merchant_id, id);
CREATE INDEX invoices_by_status ON invoices (status, id);
CREATE INDEX invoices_by_merchant_status ON invoices (merchant_id, status, id);
CREATE INDEX invoices_expiring ON invoices (chain_key, expires_at, created_at) WHERE status = 'open';
-- The amounts stand first, so that a database that knows little of the table cannot take one of these for another.
CREATE INDEX invoices_by_amount ON invoices (amount, merchant_address) WHERE status = 'open';
-- In numeric order: of two numbers without leading zeros the longer is larger.
CREATE INDEX invoices_by_tolerance ON invoices (merchant_address, chain_key, token, length(amount), amount) WHERE status = 'open' AND tolerance <> '0';
CREATE INDEX invoices_closed_by_transfer_amount ON invoices (transfer_amount, merchant_address) WHERE status <> 'open';
-- A transfer amount names one open invoice and no other.
CREATE UNIQUE INDEX invoices_open_transfer_amount ON invoices (transfer_amount, merchant_address, chain_key, token) WHERE status = 'open';

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

-- How far each chain is read, and how far it is final. The gap are older blocks that are still to be read, or read again.
CREATE TABLE chains (
    chain_key        TEXT   NOT NULL PRIMARY KEY,
    indexed_number   BIGINT NOT NULL CHECK (indexed_number >= 0),
    indexed_hash     TEXT   NOT NULL,
    indexed_time     BIGINT NOT NULL,
    confirmed_number BIGINT NOT NULL CHECK (confirmed_number >= 0),
    confirmed_hash   TEXT   NOT NULL,
    confirmed_time   BIGINT NOT NULL,
    halted           TEXT   NOT NULL DEFAULT '',             -- why the indexer stopped; empty while it runs
    gap_next         BIGINT CHECK (gap_next >= 0),           -- the next block of the gap to be read; null without a gap
    gap_last         BIGINT CHECK (gap_last <= indexed_number), -- the gap's last block; null without a gap
    gap_last_time    BIGINT,                                 -- that block's time; null without a gap
    CHECK (confirmed_number <= indexed_number),
    CHECK ((gap_next IS NULL) = (gap_last IS NULL)),
    CHECK ((gap_next IS NULL) = (gap_last_time IS NULL)),
    CHECK (gap_next <= gap_last)
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
    registry_id  TEXT   CHECK (length(registry_id) = 66),    -- which the registry's Paid event names, if any
    authorization_id TEXT CHECK (length(authorization_id) = 66), -- nonce of the authorization that made it, if any
    status       TEXT   NOT NULL CHECK (status IN ('pending', 'confirmed', 'orphaned')),
    invoice_id   TEXT   REFERENCES invoices (id),            -- null while not attributed
    merchant_id  TEXT   REFERENCES merchants (id),           -- of that invoice
    method       TEXT   CHECK (method IN ('registry', 'authorization', 'calldata', 'transfer_amount', 'amount', 'tolerance', 'by_hand')), -- how it was attributed
    attributed_by TEXT  CHECK (length(attributed_by) BETWEEN 1 AND 200), -- who attributed it by hand
    attributed_at BIGINT,                                    -- when that was
    observed_at  BIGINT NOT NULL,
    confirmed_at BIGINT,
    UNIQUE (chain_key, tx_hash, ordinal),
    CHECK ((status = 'confirmed') = (confirmed_at IS NOT NULL)),
    CHECK ((attributed_by IS NULL) = (method IS NULL OR method <> 'by_hand')),
    CHECK ((attributed_by IS NULL) = (attributed_at IS NULL)),
    CHECK ((invoice_id IS NULL) = (merchant_id IS NULL)),
    CHECK ((invoice_id IS NULL) = (method IS NULL))
);
CREATE INDEX payments_unfinal ON payments (chain_key, block_number) WHERE status = 'pending';
CREATE INDEX payments_by_invoice ON payments (invoice_id) WHERE invoice_id IS NOT NULL;
CREATE INDEX payments_by_pair ON payments (from_address, to_address, chain_key, block_number);
CREATE INDEX payments_by_receiver ON payments (to_address, amount, observed_at, seen_id);
CREATE INDEX payments_attributed ON payments (seen_id) WHERE invoice_id IS NOT NULL;
CREATE INDEX payments_by_merchant ON payments (merchant_id, seen_id) WHERE invoice_id IS NOT NULL;
CREATE INDEX payments_by_chain ON payments (chain_key, seen_id) WHERE invoice_id IS NOT NULL;
CREATE INDEX payments_by_merchant_chain ON payments (merchant_id, chain_key, seen_id) WHERE invoice_id IS NOT NULL;
CREATE INDEX payments_unattributed ON payments (seen_id) WHERE invoice_id IS NULL;
CREATE INDEX payments_unattributed_by_chain ON payments (chain_key, seen_id) WHERE invoice_id IS NULL;

-- The payments without an invoice, for each merchant whose address got them.
CREATE TABLE unattributed (
    seen_id     TEXT   NOT NULL REFERENCES payments (seen_id),
    merchant_id TEXT   NOT NULL REFERENCES merchants (id),   -- whose invoice had named the address by then
    chain_key   TEXT   NOT NULL,                             -- of the payment
    PRIMARY KEY (seen_id, merchant_id)
);
CREATE INDEX unattributed_by_merchant ON unattributed (merchant_id, seen_id);
CREATE INDEX unattributed_by_merchant_chain ON unattributed (merchant_id, chain_key, seen_id);

-- What was attributed by hand, and by whom. Rows are only added.
CREATE TABLE attributions (
    id            TEXT   NOT NULL PRIMARY KEY,               -- its order is the order of attribution
    payment_id    TEXT   NOT NULL REFERENCES payments (id),
    invoice_id    TEXT   NOT NULL REFERENCES invoices (id),  -- to which it was attributed
    attributed_by TEXT   NOT NULL CHECK (length(attributed_by) BETWEEN 1 AND 200), -- in the words of who did it
    note          TEXT   NOT NULL DEFAULT '' CHECK (length(note) <= 200), -- why
    attributed_at BIGINT NOT NULL
);
CREATE INDEX attributions_by_payment ON attributions (payment_id, id);

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
    registry_id  TEXT   CHECK (length(registry_id) = 66),    -- which the registry's Paid event names, if any
    authorization_id TEXT CHECK (length(authorization_id) = 66), -- nonce of the authorization that made it, if any
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
    id          TEXT   NOT NULL UNIQUE,                      -- evt_…
    seq         INTEGER NOT NULL PRIMARY KEY CHECK (seq >= 1), -- its order is the order of commits: who has seen one has missed none below it
    type        TEXT   NOT NULL CHECK (type IN ('invoice.created', 'invoice.paid', 'invoice.expired', 'payment.received', 'payment.refunded')),
    subject     TEXT   NOT NULL,                             -- what it is about; told once
    merchant_id TEXT   NOT NULL REFERENCES merchants (id),
    invoice_id  TEXT   NOT NULL REFERENCES invoices (id),
    body        TEXT   NOT NULL,                             -- the envelope, byte for byte as it is sent
    created_at  BIGINT NOT NULL,
    delivery_id TEXT,                                        -- dlv_…, the same at every attempt; null when the merchant wants no events
    UNIQUE (subject, type)
);
-- Each event stands in two of these four.
CREATE INDEX events_by_merchant ON events (merchant_id, type, seq) WHERE delivery_id IS NOT NULL;
CREATE INDEX events_by_type ON events (type, seq) WHERE delivery_id IS NOT NULL;
CREATE INDEX events_unwanted_by_merchant ON events (merchant_id, type, seq) WHERE delivery_id IS NULL;
CREATE INDEX events_unwanted_by_type ON events (type, seq) WHERE delivery_id IS NULL;
CREATE INDEX events_by_invoice ON events (invoice_id, seq);

-- The schedule: the deliveries that are not finished. A delivery is in this table or in finished_deliveries.
CREATE TABLE deliveries (
    seq         INTEGER NOT NULL PRIMARY KEY REFERENCES events (seq),
    merchant_id TEXT   NOT NULL,                             -- of the event
    attempts    BIGINT NOT NULL DEFAULT 0 CHECK (attempts >= 0), -- finished ones
    since       BIGINT NOT NULL DEFAULT 0 CHECK (since BETWEEN 0 AND attempts), -- those before the present schedule: it was sent again
    due_ms      BIGINT NOT NULL,                             -- when the next attempt may start
    deadline_ms BIGINT NOT NULL                              -- no attempt but the first starts after it
);
-- The queues of each merchant: what was never attempted, what is to be tried again, and when that runs out of time.
CREATE INDEX deliveries_first ON deliveries (merchant_id, due_ms, seq) WHERE attempts = 0;
CREATE INDEX deliveries_retry ON deliveries (merchant_id, due_ms, seq) WHERE attempts > 0;
CREATE INDEX deliveries_last ON deliveries (merchant_id, deadline_ms, seq) WHERE attempts > 0;

-- The attempts under way. They stand apart so that taking one up leaves the queues as they are.
CREATE TABLE leased (
    seq         INTEGER NOT NULL PRIMARY KEY REFERENCES deliveries (seq),
    merchant_id TEXT   NOT NULL,                             -- of the event
    lease_id    TEXT   NOT NULL,                             -- who makes the attempt
    until_ms    BIGINT NOT NULL                              -- afterwards anyone may take it
);
CREATE INDEX leased_by_merchant ON leased (merchant_id, until_ms);

-- The processes that take up attempts. One that is alone knows by itself what is under way.
CREATE TABLE deliverers (
    id       TEXT   NOT NULL PRIMARY KEY,                    -- random, of one run of a process
    until_ms BIGINT NOT NULL                                 -- how long it may hold leases
);

-- The deliveries that are finished. One that is sent again goes back to the schedule.
CREATE TABLE finished_deliveries (
    seq         INTEGER NOT NULL PRIMARY KEY REFERENCES events (seq),
    merchant_id TEXT   NOT NULL,                             -- of the event
    status      TEXT   NOT NULL CHECK (status IN ('delivered', 'failed')),
    attempts    BIGINT NOT NULL CHECK (attempts >= 0),       -- 0: it ran out of time while its endpoint was left alone
    finished_ms BIGINT NOT NULL                              -- when it was delivered or failed
);
CREATE INDEX failed_deliveries ON finished_deliveries (seq) WHERE status = 'failed';
CREATE INDEX failed_deliveries_by_merchant ON finished_deliveries (merchant_id, seq) WHERE status = 'failed';

-- The log of attempts.
CREATE TABLE attempts (
    seq          BIGINT NOT NULL REFERENCES events (seq),
    number       BIGINT NOT NULL CHECK (number >= 1),
    started_ms   BIGINT NOT NULL,
    duration_ms  BIGINT NOT NULL CHECK (duration_ms >= 0),
    status_code  BIGINT CHECK (status_code BETWEEN 100 AND 999),      -- null when there was no answer
    error        TEXT   NOT NULL DEFAULT '',                          -- why it was not a success
    excerpt      TEXT   NOT NULL DEFAULT '',                          -- how the answer's body began, without secrets
    lookup_ms    BIGINT NOT NULL DEFAULT 0 CHECK (lookup_ms >= 0),    -- of duration_ms: looking up the name
    connect_ms   BIGINT NOT NULL DEFAULT 0 CHECK (connect_ms >= 0),   -- connecting
    handshake_ms BIGINT NOT NULL DEFAULT 0 CHECK (handshake_ms >= 0), -- the TLS handshake
    answer_ms    BIGINT NOT NULL DEFAULT 0 CHECK (answer_ms >= 0),    -- waiting for the answer's first byte
    PRIMARY KEY (seq, number)
);

-- How the merchants' endpoints do. One that nothing was sent to yet has no row.
CREATE TABLE breakers (
    merchant_id TEXT   NOT NULL PRIMARY KEY REFERENCES merchants (id),
    state       TEXT   NOT NULL CHECK (state IN ('closed', 'open', 'gone')), -- gone: it answered that it wants nothing any more
    steady      BIGINT NOT NULL CHECK (steady IN (0, 1)),    -- whether its last answer was a quick success
    allowed     BIGINT NOT NULL CHECK (allowed >= 1),        -- how many attempts may be under way
    failures    BIGINT NOT NULL CHECK (failures >= 0),       -- in a row
    timeouts    BIGINT NOT NULL CHECK (timeouts BETWEEN 0 AND failures), -- in a row, of those
    pauses      BIGINT NOT NULL CHECK (pauses >= 0),         -- in a row, how often it was left alone for a while
    since_ms    BIGINT NOT NULL,                             -- when the first of these began; 0 while closed
    until_ms    BIGINT NOT NULL,                             -- how long it is left alone; then one attempt probes it
    CHECK ((state = 'closed') = (pauses = 0))
);

-- Where the merchants' events go, of those that are not in the configuration.
CREATE TABLE endpoints (
    merchant_id TEXT   NOT NULL PRIMARY KEY,
    url         TEXT   NOT NULL,
    changed_at  BIGINT NOT NULL
);

-- The secrets that sign for these endpoints.
CREATE TABLE endpoint_secrets (
    merchant_id TEXT   NOT NULL,
    version     BIGINT NOT NULL CHECK (version >= 1),
    sealed      TEXT   NOT NULL,                             -- base64 of the secret, encrypted under the master key for merchant and version
    key_id      TEXT   NOT NULL,                             -- of that master key
    state       TEXT   NOT NULL CHECK (state IN ('staged', 'active', 'retiring')),
    created_at  BIGINT NOT NULL,
    valid_until BIGINT,                                      -- how long a retiring one still signs beside the active one
    PRIMARY KEY (merchant_id, version),
    CHECK ((state = 'retiring') = (valid_until IS NOT NULL))
);
CREATE UNIQUE INDEX endpoint_secrets_staged ON endpoint_secrets (merchant_id) WHERE state = 'staged';
CREATE UNIQUE INDEX endpoint_secrets_active ON endpoint_secrets (merchant_id) WHERE state = 'active';

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
CREATE INDEX notices_by_payment ON notices (payment_id) WHERE payment_id IS NOT NULL;

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
CREATE INDEX intents_by_tx ON intents (tx_id) WHERE tx_id IS NOT NULL;
CREATE INDEX intents_seen ON intents (chain_key, seen_block) WHERE seen_block IS NOT NULL AND status <> 'done';

-- Work that one replica does at a time.
CREATE TABLE leases (
    name     TEXT   NOT NULL PRIMARY KEY,                    -- of the work, such as writer:base
    holder   TEXT   NOT NULL,                                -- of the lease; a random id, never a host
    until_ms BIGINT NOT NULL                                 -- afterwards anyone may take it
);
