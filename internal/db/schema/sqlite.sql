-- The schema of a SQLite database. postgres.sql has the same tables. ../migrations/README.md explains how to change
-- it.
--
-- Conventions:
--   identifiers    text, see docs/decisions/0001-identifiers.md
--   amounts        text, decimal digits in minor units (no column type of both databases holds a uint256)
--   addresses      text, 0x and 40 lower-case hex digits
--   hashes         text, 0x and 64 lower-case hex digits, unless a comment names another form
--   *_at           Unix seconds; *_ms is Unix milliseconds
--   chain_key      the configured key of a chain

-- =====================================================================================================================
-- Merchants and their addresses
-- =====================================================================================================================

-- Merchants that own invoices.
CREATE TABLE merchants (
    id         TEXT NOT NULL PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 64), -- chosen by the merchant
    created_at BIGINT NOT NULL                                                -- when first seen
);

-- Profiles and rules of merchants. A merchant of the configuration has no row here.
CREATE TABLE merchant_profiles (
    -- the merchant
    merchant_id       TEXT NOT NULL PRIMARY KEY REFERENCES merchants (id),
    -- shown to payers
    name              TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    -- #rrggbb in lower case; empty without one
    color             TEXT NOT NULL CHECK (length(color) IN (0, 7)),
    -- e-mail address or https URL; may be empty
    support_contact   TEXT NOT NULL CHECK (length(support_contact) <= 200),
    -- text for payers; may be empty
    statement         TEXT NOT NULL CHECK (length(statement) <= 500),
    -- tolerance of new invoices: minor units, or a percentage; may be empty
    tolerance         TEXT NOT NULL CHECK (length(tolerance) <= 80),
    -- JSON object: settlement address by chain key
    default_addresses TEXT NOT NULL CHECK (length(default_addresses) <= 65536),
    -- JSON array of {chainKey, address}; empty array for no restriction
    allowed_addresses TEXT NOT NULL CHECK (length(allowed_addresses) <= 65536),
    -- JSON array that replaces allowed_addresses at pending_at
    pending_addresses TEXT CHECK (length(pending_addresses) <= 65536),
    -- when the pending array takes effect
    pending_at        BIGINT,
    -- JSON object that replaces default_addresses at pending_defaults_at
    pending_defaults  TEXT CHECK (length(pending_defaults) <= 65536),
    -- when the pending object takes effect
    pending_defaults_at BIGINT,
    -- when it was created
    created_at        BIGINT NOT NULL,
    -- when it was last changed
    changed_at        BIGINT NOT NULL,
    -- JSON array of the only hosts of return_url and cancel_url; empty array if every host is allowed
    return_hosts      TEXT NOT NULL DEFAULT '[]' CHECK (length(return_hosts) <= 16384),
    -- collection of invoices that are created without one
    collection        TEXT NOT NULL DEFAULT 'direct' CHECK (collection IN ('direct', 'deposit')),
    -- JSON array of origins that may frame the checkout; empty array for no origin
    embed_origins     TEXT NOT NULL DEFAULT '[]' CHECK (length(embed_origins) <= 16384),
    -- name of the IANA time zone database, such as Europe/Berlin; empty: UTC
    timezone          TEXT NOT NULL DEFAULT '' CHECK (length(timezone) <= 64),
    -- JSON array of the hours from the end of the time to pay at which sent invoices are reminded of; negative: before
    reminder_hours    TEXT NOT NULL DEFAULT '[]' CHECK (length(reminder_hours) <= 100),
    CHECK ((pending_addresses IS NULL) = (pending_at IS NULL)),
    CHECK ((pending_defaults IS NULL) = (pending_defaults_at IS NULL))
);

-- Logos of merchants, encoded by the service.
CREATE TABLE merchant_logos (
    merchant_id TEXT NOT NULL PRIMARY KEY REFERENCES merchant_profiles (merchant_id), -- the merchant
    png         TEXT NOT NULL CHECK (length(png) <= 400000),                          -- base64
    sha256      TEXT NOT NULL CHECK (length(sha256) = 64),                            -- SHA-256 in hex
    width       INTEGER NOT NULL CHECK (width > 0),                                   -- in pixels
    height      INTEGER NOT NULL CHECK (height > 0)                                   -- in pixels
);

-- The holders of merchant ids: a row for each id that the configuration has, had, or that was retired.
CREATE TABLE merchant_holders (
    -- the merchant id
    merchant_id    TEXT NOT NULL PRIMARY KEY CHECK (length(merchant_id) <= 64),
    -- JSON array of the allowed addresses in the configuration when a service last started with it
    addresses      TEXT NOT NULL,
    -- hash of the host of its webhookUrl then; hex, empty without a URL
    webhook_sha256 TEXT NOT NULL,
    -- hash of the whole webhookUrl; hex, empty without one. With another URL the breaker of the former one ends
    url_sha256     TEXT NOT NULL,
    -- Unix seconds of the first start with it
    since          BIGINT NOT NULL,
    -- Unix seconds of the first start without it; null while the configuration has it
    left_at        BIGINT,
    -- Unix seconds; null unless it was retired
    retired_at     BIGINT
);

-- The storage and the quotas of each merchant.
CREATE TABLE merchant_storage (
    -- empty: the quotas of merchants without own quotas
    merchant_id   TEXT NOT NULL PRIMARY KEY CHECK (length(merchant_id) <= 64),
    -- number of audit log entries that the merchant's keys caused, and that are not archived
    audit_bytes   BIGINT NOT NULL DEFAULT 0 CHECK (audit_bytes >= 0),
    -- quota of these entries; null for the quota of all
    audit_quota   BIGINT CHECK (audit_quota >= 0),
    -- number of invoices that were made for the merchant, up to counted_to
    invoices      BIGINT NOT NULL DEFAULT 0 CHECK (invoices >= 0),
    -- id of the newest invoice that was counted
    counted_to    TEXT NOT NULL DEFAULT '',
    -- quota of these invoices; null for the quota of all
    invoice_quota BIGINT CHECK (invoice_quota >= 0),
    CHECK (merchant_id <> '' OR (audit_quota IS NOT NULL AND invoice_quota IS NOT NULL))
);
INSERT INTO merchant_storage (merchant_id, audit_quota, invoice_quota) VALUES ('', 1073741824, 10000000);

-- Every address that an invoice ever named. Transfers to it are always recorded.
CREATE TABLE settlement_addresses (
    -- the chain
    chain_key   TEXT NOT NULL,
    -- the settlement address
    address     TEXT NOT NULL CHECK (length(address) = 42),
    -- a merchant with an invoice that named it; several may share an address
    merchant_id TEXT NOT NULL REFERENCES merchants (id),
    -- when first named
    created_at  BIGINT NOT NULL,
    -- the newest block that was known when it was first named, at most: all transfers in blocks above are recorded
    from_block  BIGINT NOT NULL DEFAULT 0 CHECK (from_block >= 0),
    PRIMARY KEY (chain_key, address, merchant_id)
);

-- Addresses that merchants hold. Two transactions that would give an address to different merchants contend for its
-- row.
CREATE TABLE held_addresses (
    -- the address
    address     TEXT NOT NULL PRIMARY KEY CHECK (length(address) = 42),
    -- the merchant with a key that used or listed the address first; null once the operator gave it to merchants
    sole_holder TEXT REFERENCES merchants (id),
    -- when it was first held
    created_at  BIGINT NOT NULL
);

-- Merchants to which the operator gave an address: with an invoice, a list of allowed addresses or a default address.
CREATE TABLE address_grants (
    address     TEXT NOT NULL REFERENCES held_addresses (address), -- the address
    merchant_id TEXT NOT NULL REFERENCES merchants (id),           -- the merchant
    created_at  BIGINT NOT NULL,                                   -- when it was given
    PRIMARY KEY (address, merchant_id)
);

-- Settlement addresses from which a transaction named a refund that was prepared for them: the holder of such an
-- address controls it.
CREATE TABLE proved_addresses (
    chain_key TEXT NOT NULL,                              -- chain of the transaction
    address   TEXT NOT NULL CHECK (length(address) = 42), -- the address that sent it
    tx_hash   TEXT NOT NULL CHECK (length(tx_hash) = 66), -- hash of the first such transaction
    proved_at BIGINT NOT NULL,                            -- Unix seconds: when it was seen
    PRIMARY KEY (chain_key, address)
);

-- =====================================================================================================================
-- Invoices
-- =====================================================================================================================

-- Requests of merchants for payment, with the sums that have arrived.
CREATE TABLE invoices (
    -- inv_…; its order is the order of creation
    id                   TEXT NOT NULL PRIMARY KEY,
    -- onChainInvoiceId of the API
    commitment_id        TEXT NOT NULL UNIQUE CHECK (length(commitment_id) = 66),
    -- the merchant
    merchant_id          TEXT NOT NULL REFERENCES merchants (id),
    -- settlement address
    merchant_address     TEXT NOT NULL CHECK (length(merchant_address) = 42),
    -- the chain
    chain_key            TEXT NOT NULL,
    -- contract of the currency
    token                TEXT NOT NULL CHECK (length(token) = 42),
    -- code of the currency
    currency             TEXT NOT NULL,
    -- amount to be paid, in minor units
    amount               TEXT NOT NULL
        CHECK (length(amount) BETWEEN 1 AND 78 AND trim(amount, '0123456789') = '' AND substr(amount, 1, 1) <> '0'),
    -- amount with a suffix that no other open invoice has; null if there was no free one
    transfer_amount      TEXT
        CHECK (length(transfer_amount) BETWEEN 1 AND 78 AND trim(transfer_amount, '0123456789') = ''),
    -- underpayment that is still accepted
    tolerance            TEXT NOT NULL DEFAULT '0'
        CHECK (trim(tolerance, '0123456789') = '' AND length(tolerance) >= 1),
    -- JSON array of {label, amount}
    line_items           TEXT NOT NULL,
    -- see docs/states.md
    status               TEXT NOT NULL CHECK (status IN ('draft', 'open', 'paid', 'expired', 'void')),
    -- see docs/states.md; empty without one
    exception            TEXT NOT NULL DEFAULT ''
        CHECK (exception IN ('', 'underpaid', 'overpaid', 'late', 'duplicate')),
    -- confirmed transfers
    amount_paid          TEXT NOT NULL DEFAULT '0' CHECK (trim(amount_paid, '0123456789') = ''),
    -- confirmed transfers back
    amount_refunded      TEXT NOT NULL DEFAULT '0' CHECK (trim(amount_refunded, '0123456789') = ''),
    -- when it was created
    created_at           BIGINT NOT NULL,
    -- when it expires by the time of blocks
    expires_at           BIGINT NOT NULL,
    -- transaction that completed the amount
    settled_tx           TEXT CHECK (length(settled_tx) = 66),
    -- time of that transaction's block
    settled_at           BIGINT,
    -- 1: the sums below are not known, and the payments must be added up
    sums_stale           BIGINT NOT NULL DEFAULT 0 CHECK (sums_stale IN (0, 1)),
    -- its payments, in any status
    payment_count        BIGINT NOT NULL DEFAULT 0 CHECK (payment_count >= 0),
    -- sum of payments mined by expires_at, confirmed or not
    arrived_in_time      TEXT NOT NULL DEFAULT '0'
        CHECK (trim(arrived_in_time, '0123456789') = '' AND length(arrived_in_time) >= 1),
    -- dust in arrived_in_time
    arrived_in_time_dust TEXT NOT NULL DEFAULT '0'
        CHECK (trim(arrived_in_time_dust, '0123456789') = '' AND length(arrived_in_time_dust) >= 1),
    -- sum of payments mined after expires_at, confirmed or not
    arrived_late         TEXT NOT NULL DEFAULT '0'
        CHECK (trim(arrived_late, '0123456789') = '' AND length(arrived_late) >= 1),
    -- dust in arrived_late
    arrived_late_dust    TEXT NOT NULL DEFAULT '0'
        CHECK (trim(arrived_late_dust, '0123456789') = '' AND length(arrived_late_dust) >= 1),
    -- no payment is above this block, unless it is orphaned
    newest_block         BIGINT NOT NULL DEFAULT 0 CHECK (newest_block >= 0),
    -- no payment in newest_block is above this log
    newest_log           BIGINT NOT NULL DEFAULT 0 CHECK (newest_log >= 0),
    -- sum of payments confirmed and mined by expires_at, up to the payment that completed the amount
    due                  TEXT NOT NULL DEFAULT '0' CHECK (trim(due, '0123456789') = '' AND length(due) >= 1),
    -- dust in due
    due_dust             TEXT NOT NULL DEFAULT '0' CHECK (trim(due_dust, '0123456789') = '' AND length(due_dust) >= 1),
    -- dust in the rest of amount_paid
    beyond_dust          TEXT NOT NULL DEFAULT '0'
        CHECK (trim(beyond_dust, '0123456789') = '' AND length(beyond_dust) >= 1),
    -- block of the last payment in amount_paid
    counted_block        BIGINT NOT NULL DEFAULT 0 CHECK (counted_block >= 0),
    -- log of the last payment in amount_paid, in its block
    counted_log          BIGINT NOT NULL DEFAULT 0 CHECK (counted_log >= 0),
    -- the height up to which the chain was read when it was created: transfers above can pay it; 0 if it was never read
    from_block           BIGINT NOT NULL DEFAULT 0 CHECK (from_block >= 0),
    -- the height up to which the chain was read when it left the state open; null before
    closed_block         BIGINT CHECK (closed_block >= 0),
    -- remainder after a partial payment; null unless open and partly paid
    remaining            TEXT
        CHECK (remaining IS NULL OR length(remaining) BETWEEN 1 AND 78 AND trim(remaining, '0123456789') = ''
            AND substr(remaining, 1, 1) <> '0' AND status = 'open'),
    -- remaining with a suffix; null if there was no free one
    remaining_transfer   TEXT
        CHECK (remaining_transfer IS NULL OR length(remaining_transfer) BETWEEN 1 AND 78
            AND trim(remaining_transfer, '0123456789') = '' AND remaining IS NOT NULL),
    -- its registry; the zero address without one
    registry             TEXT NOT NULL CHECK (length(registry) = 42),
    -- how payers pay: at the settlement address, or at an address of the invoice
    collection           TEXT NOT NULL DEFAULT 'direct' CHECK (collection IN ('direct', 'deposit')),
    -- contract from which deposit_address is derived; null for a draft and without deposit address
    deposit_factory      TEXT
        CHECK (deposit_factory IS NULL OR length(deposit_factory) = 42 AND collection = 'deposit'),
    -- where payers pay; null for a draft and for direct invoices; unique per chain in deposits
    deposit_address      TEXT
        CHECK (deposit_address IS NULL OR length(deposit_address) = 42 AND coalesce(deposit_factory, '') <> ''),
    -- transaction of the newest confirmed sweep of the invoice's token; null without one
    swept_tx             TEXT CHECK (swept_tx IS NULL OR length(swept_tx) = 66 AND coalesce(deposit_address, '') <> ''),
    -- kind of its inbox item; empty if it needs no decision
    item                 TEXT NOT NULL DEFAULT ''
        CHECK (item IN ('', 'underpaid', 'overpaid', 'late', 'duplicate')),
    -- returned part of arrived_in_time
    arrived_returned     TEXT NOT NULL DEFAULT '0'
        CHECK (trim(arrived_returned, '0123456789') = '' AND length(arrived_returned) >= 1),
    -- returned part of due
    due_returned         TEXT NOT NULL DEFAULT '0'
        CHECK (trim(due_returned, '0123456789') = '' AND length(due_returned) >= 1),
    -- without this, its payments would not be seen
    FOREIGN KEY (chain_key, merchant_address, merchant_id)
        REFERENCES settlement_addresses (chain_key, address, merchant_id),
    CHECK (length(tolerance) < length(amount) OR length(tolerance) = length(amount) AND tolerance < amount),
    CHECK (expires_at > created_at),
    CHECK ((status = 'paid') = (settled_tx IS NOT NULL)),
    CHECK ((settled_tx IS NULL) = (settled_at IS NULL))
);
CREATE INDEX invoices_by_merchant ON invoices (merchant_id, id);
-- For lists by status, exception and inbox item, which merge the rows of several combinations.
CREATE INDEX invoices_by_state ON invoices (status, exception, item, id);
CREATE INDEX invoices_by_merchant_state ON invoices (merchant_id, status, exception, item, id);
-- To find the invoices with the nearest amounts. In numeric order, of equal amounts the newest first.
CREATE INDEX invoices_near ON invoices (merchant_address, chain_key, token, length(amount), amount, id DESC)
    WHERE status IN ('open', 'expired');
-- Open invoices by their expiry. A reorg, which binds deposit invoices above a height to it, reads all entries of the
-- chain.
CREATE INDEX invoices_expiring ON invoices (chain_key, expires_at, from_block) WHERE status = 'open';
-- There are seldom any: partly paid invoices, those with sums that are not known, and those created before their chain
-- was first read.
CREATE INDEX invoices_rare ON invoices (chain_key, merchant_address, token, id)
    WHERE remaining IS NOT NULL OR sums_stale = 1 OR from_block = 0;
CREATE INDEX invoices_by_address ON invoices (merchant_address, id);
-- Open invoices that accept less than their amount, and those that were closed above a block.
CREATE INDEX invoices_by_tolerance ON invoices (merchant_address, chain_key, token, closed_block, length(amount), amount)
    WHERE tolerance <> '0' AND collection = 'direct';
-- Invoices that a statement of a month does not find by the times in their ids: they live for more than a day.
CREATE INDEX invoices_long_lived ON invoices (merchant_id, expires_at, id) WHERE expires_at - created_at > 86400;
-- Lists by an amount name this condition, so that a lookup of the invoices of an address does not read this index.
CREATE INDEX invoices_of_price ON invoices (amount, id) WHERE length(id) > 0;

-- Details that a merchant adds to an invoice. An invoice without details has no row.
CREATE TABLE invoice_details (
    -- the invoice
    invoice_id       TEXT NOT NULL PRIMARY KEY REFERENCES invoices (id),
    -- merchant of the invoice
    merchant_id      TEXT NOT NULL,
    -- the merchant's reference for the invoice; may be null
    reference        TEXT CHECK (length(reference) BETWEEN 1 AND 200),
    -- 1: reserved_references has the reference while the invoice is a draft or open
    unique_reference BIGINT NOT NULL DEFAULT 0 CHECK (unique_reference IN (0, 1)),
    -- shown on the checkout page; null without one
    description      TEXT CHECK (length(description) BETWEEN 1 AND 500),
    -- the merchant's id of the customer; may be null
    customer_id      TEXT CHECK (length(customer_id) BETWEEN 1 AND 200),
    -- e-mail address of the customer; may be null
    customer_email   TEXT CHECK (length(customer_email) BETWEEN 1 AND 254),
    -- link of the checkout page once the invoice is paid; null without one
    return_url       TEXT CHECK (length(return_url) BETWEEN 1 AND 2048),
    -- link of the checkout page while it is not paid; null without one
    cancel_url       TEXT CHECK (length(cancel_url) BETWEEN 1 AND 2048),
    -- JSON object of texts, as in invoice_metadata; null if it is empty
    metadata         TEXT CHECK (length(metadata) BETWEEN 3 AND 400000),
    CHECK (unique_reference = 0 OR reference IS NOT NULL)
);
CREATE INDEX invoice_details_by_reference ON invoice_details (reference, invoice_id) WHERE reference IS NOT NULL;
CREATE INDEX invoice_details_by_merchant_reference ON invoice_details (merchant_id, reference, invoice_id)
    WHERE reference IS NOT NULL;
CREATE INDEX invoice_details_by_customer ON invoice_details (merchant_id, coalesce(customer_id, customer_email),
    invoice_id) WHERE coalesce(customer_id, customer_email) IS NOT NULL;
CREATE INDEX invoice_details_by_customer_email ON invoice_details (merchant_id, customer_email, customer_id)
    WHERE customer_email IS NOT NULL AND customer_id IS NOT NULL;

-- The pairs of invoice_details.metadata, by which invoices are found.
CREATE TABLE invoice_metadata (
    invoice_id  TEXT NOT NULL REFERENCES invoices (id),             -- the invoice
    merchant_id TEXT NOT NULL,                                      -- merchant of the invoice
    key         TEXT NOT NULL CHECK (length(key) BETWEEN 1 AND 40), -- the key of the pair
    value       TEXT NOT NULL CHECK (length(value) <= 500),         -- the value of the pair
    PRIMARY KEY (invoice_id, key)
);
CREATE INDEX invoice_metadata_by_pair ON invoice_metadata (key, value, invoice_id);
CREATE INDEX invoice_metadata_by_merchant_pair ON invoice_metadata (merchant_id, key, value, invoice_id);

-- The words of the descriptions and the e-mail addresses of invoices, by which a search finds them.
CREATE TABLE invoice_words (
    invoice_id  TEXT NOT NULL REFERENCES invoices (id),                     -- the invoice
    merchant_id TEXT NOT NULL,                                              -- merchant of the invoice
    word        TEXT NOT NULL CHECK (length(word) BETWEEN 1 AND 254),       -- in lower case
    PRIMARY KEY (invoice_id, word)
);
CREATE INDEX invoice_words_by_merchant_word ON invoice_words (merchant_id, word, invoice_id);

-- The invoice that has a reference which was created as unique. The row stays when the invoice is closed, until the
-- next invoice with the reference replaces it.
CREATE TABLE reserved_references (
    merchant_id TEXT NOT NULL,                                             -- merchant of the invoice
    reference   TEXT NOT NULL CHECK (length(reference) BETWEEN 1 AND 200), -- the unique reference
    invoice_id  TEXT NOT NULL UNIQUE REFERENCES invoices (id),             -- the invoice that has it
    PRIMARY KEY (merchant_id, reference)
);

-- Transitions of invoices that a request caused. Invoices become paid or expired by the chain, without a row here.
CREATE TABLE invoice_transitions (
    -- the invoice
    invoice_id TEXT NOT NULL REFERENCES invoices (id),
    -- new status of the invoice: open if it was a draft before
    status     TEXT NOT NULL CHECK (status IN ('open', 'void')),
    -- when it changed
    at         BIGINT NOT NULL CHECK (at > 0),
    -- who changed it; null if that is not known
    changed_by TEXT CHECK (length(changed_by) >= 1),
    PRIMARY KEY (invoice_id, status)
);

-- When the page of an invoice was first opened.
CREATE TABLE invoice_openings (
    invoice_id TEXT NOT NULL PRIMARY KEY REFERENCES invoices (id), -- the invoice
    opened_at  BIGINT NOT NULL                                     -- Unix seconds
);

-- Every amount that payers of direct invoices owe: the whole of each invoice that is no draft, and the remainders after
-- partial payments. The checkout asks for it with a suffix.
CREATE TABLE transfer_amounts (
    -- the invoice. This row may be written first: it decides whether the invoice can have the amount
    invoice_id       TEXT NOT NULL REFERENCES invoices (id) DEFERRABLE INITIALLY DEFERRED,
    -- amount due: the amount of the invoice, or a remainder
    base             TEXT NOT NULL
        CHECK (length(base) BETWEEN 1 AND 78 AND trim(base, '0123456789') = '' AND substr(base, 1, 1) <> '0'),
    -- base with a suffix, as shown to the payer; null if no amount was free
    amount           TEXT
        CHECK (length(amount) BETWEEN 1 AND 78 AND trim(amount, '0123456789') = '' AND substr(amount, 1, 1) <> '0'),
    -- settlement address of the invoice
    merchant_address TEXT NOT NULL,
    -- chain of the invoice
    chain_key        TEXT NOT NULL,
    -- token of the invoice
    token            TEXT NOT NULL,
    -- the height up to which the chain was read when the payer was asked: transfers above it can pay the invoice
    from_block       BIGINT NOT NULL CHECK (from_block >= 0),
    -- expires_at of the invoice
    expires_at       BIGINT NOT NULL,
    -- 1: base is a remainder
    remainder        BIGINT NOT NULL CHECK (remainder IN (0, 1)),
    -- 1: the invoice is open
    live             BIGINT NOT NULL CHECK (live IN (0, 1)),
    -- closed_block of the invoice; null while it is open
    closed_block     BIGINT CHECK (closed_block IS NULL OR closed_block >= 0 AND live = 0),
    PRIMARY KEY (invoice_id, base)
);
-- An amount is assigned to one open invoice and no other.
CREATE UNIQUE INDEX transfer_amounts_live ON transfer_amounts (amount, merchant_address, chain_key, token)
    WHERE live = 1;
-- The last invoice to which an amount was assigned.
CREATE INDEX transfer_amounts_by_amount ON transfer_amounts (amount, merchant_address, chain_key, token, from_block,
    invoice_id);
-- The rows that a reorg of the blocks above a height binds to that height.
CREATE INDEX transfer_amounts_bound ON transfer_amounts (chain_key, from_block);
-- Open invoices that await an amount, and those that were closed above a block: they could still be paid in it.
CREATE INDEX transfer_amounts_by_base ON transfer_amounts (base, merchant_address, chain_key, token, closed_block);

-- Payment links: pages on which payers create invoices of a merchant.
CREATE TABLE payment_links (
    -- lnk_…
    id               TEXT NOT NULL PRIMARY KEY CHECK (id LIKE 'lnk\_%' ESCAPE '\'),
    -- merchant that owns the invoices made from it
    merchant_id      TEXT NOT NULL REFERENCES merchants (id),
    -- last part of the page's path
    slug             TEXT NOT NULL CHECK (length(slug) BETWEEN 1 AND 64),
    -- 1: it makes no more invoices
    archived         BIGINT NOT NULL CHECK (archived IN (0, 1)),
    -- headline of the page
    title            TEXT NOT NULL CHECK (length(title) BETWEEN 1 AND 200),
    -- text below it; null without one
    description      TEXT CHECK (length(description) BETWEEN 1 AND 500),
    -- minor units; null if the payer enters it
    amount           TEXT
        CHECK (length(amount) BETWEEN 1 AND 78 AND trim(amount, '0123456789') = '' AND substr(amount, 1, 1) <> '0'),
    -- least that a payer may enter; null for no bound
    min_amount       TEXT
        CHECK (length(min_amount) BETWEEN 1 AND 78 AND trim(min_amount, '0123456789') = ''
            AND substr(min_amount, 1, 1) <> '0'),
    -- most that a payer may enter; null for no bound
    max_amount       TEXT
        CHECK (length(max_amount) BETWEEN 1 AND 78 AND trim(max_amount, '0123456789') = ''
            AND substr(max_amount, 1, 1) <> '0'),
    -- currency of the invoices
    currency         TEXT NOT NULL CHECK (length(currency) >= 1),
    -- chain of the invoices
    chain_key        TEXT NOT NULL CHECK (length(chain_key) >= 1),
    -- where the invoices settle; null for the merchant's default address
    merchant_address TEXT CHECK (length(merchant_address) = 42),
    -- label of the invoices' line item; null without one
    line_item        TEXT CHECK (length(line_item) BETWEEN 1 AND 200),
    -- prefix of the invoices' references; null without one
    reference_prefix TEXT CHECK (length(reference_prefix) BETWEEN 1 AND 180),
    -- collection of the invoices; null for the merchant's
    collection       TEXT CHECK (collection IN ('direct', 'deposit')),
    -- return_url of the invoices; null without one
    return_url       TEXT CHECK (length(return_url) BETWEEN 1 AND 2048),
    -- cancel_url of the invoices; null without one
    cancel_url       TEXT CHECK (length(cancel_url) BETWEEN 1 AND 2048),
    -- seconds from an invoice's creation to its expiry
    lifetime         BIGINT NOT NULL CHECK (lifetime > 0),
    -- Unix seconds
    created_at       BIGINT NOT NULL,
    -- Unix seconds
    changed_at       BIGINT NOT NULL,
    -- the caller that created it with an Idempotency-Key
    idem_scope       TEXT,
    -- that key
    idem_key         TEXT CHECK (length(idem_key) BETWEEN 1 AND 255),
    -- hash of the request, to refuse a different one with the same key
    request_hash     TEXT CHECK (length(request_hash) = 66),
    UNIQUE (idem_scope, idem_key),
    CHECK (amount IS NULL OR (min_amount IS NULL AND max_amount IS NULL)),
    CHECK ((idem_key IS NULL) = (idem_scope IS NULL)),
    CHECK ((idem_key IS NULL) = (request_hash IS NULL))
);
CREATE UNIQUE INDEX payment_links_in_use ON payment_links (merchant_id, slug) WHERE archived = 0;
CREATE INDEX payment_links_by_merchant ON payment_links (merchant_id, id);
CREATE INDEX payment_links_by_merchant_slug ON payment_links (merchant_id, slug, id);
CREATE INDEX payment_links_by_merchant_archived ON payment_links (merchant_id, archived, id);
CREATE INDEX payment_links_by_slug ON payment_links (slug, id);
CREATE INDEX payment_links_by_archived ON payment_links (archived, id);

-- Creates that may be repeated with the same Idempotency-Key.
CREATE TABLE idempotency_keys (
    -- the caller, because two callers may use the same key
    scope        TEXT NOT NULL,
    -- the Idempotency-Key
    idem_key     TEXT NOT NULL CHECK (length(idem_key) BETWEEN 1 AND 255),
    -- hash of the request, to refuse a different one with the same key
    request_hash TEXT NOT NULL,
    -- the first answer, which may be a draft that was deleted
    invoice_id   TEXT NOT NULL CHECK (length(invoice_id) BETWEEN 1 AND 64),
    -- when it was used
    created_at   BIGINT NOT NULL,
    PRIMARY KEY (scope, idem_key)
);
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at);

-- Mails about invoices, one row for each.
CREATE TABLE mails (
    -- the invoice
    invoice_id  TEXT NOT NULL REFERENCES invoices (id),
    -- number within the invoice, from 1
    number      BIGINT NOT NULL CHECK (number > 0),
    -- merchant of the invoice
    merchant_id TEXT NOT NULL,
    -- receipt: a payer asked for it; invoice: the merchant sent it; reminder: of a sent invoice
    kind        TEXT NOT NULL CHECK (kind IN ('receipt', 'invoice', 'reminder')),
    -- of a reminder: hours from the end of the time to pay; negative: before it
    hours       BIGINT CHECK (hours <> 0),
    -- language of the text, such as en
    language    TEXT NOT NULL CHECK (length(language) BETWEEN 2 AND 20),
    -- e-mail address; of a receipt, null once it was sent or given up; null once it is erased
    recipient   TEXT CHECK (length(recipient) BETWEEN 3 AND 254),
    -- hash of the address, by which mails to it are counted; null of a receipt
    mailbox     TEXT CHECK (length(mailbox) = 64),
    -- secret of the mail, from which its Message-ID and the page on which the recipient stops mails are known; null of an
    -- erased receipt
    token       TEXT CHECK (length(token) BETWEEN 20 AND 64),
    -- canceled: it was not needed any more; stopped: the recipient wants none
    state       TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'sent', 'failed', 'canceled', 'stopped')),
    -- number of attempts that began; the outcome of an attempt is recorded only if it is the last one
    attempts    BIGINT NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    -- Unix seconds, by the schedule's clock: the next attempt, or the end of the lease while an attempt runs; before the
    -- first attempt of a reminder, send_at; null once it is over
    due_at      BIGINT,
    -- who sent the invoice; null if it is not known
    sent_by     TEXT CHECK (length(sent_by) BETWEEN 1 AND 300),
    -- Unix seconds
    created_at  BIGINT NOT NULL,
    -- Unix seconds: when it is to be sent
    send_at     BIGINT NOT NULL,
    -- Unix seconds: when the server took it, or it was given up; null before, and otherwise
    ended_at    BIGINT,
    -- Unix seconds: when a server returned it, after the server to which it was sent took it; null if none did
    bounced_at  BIGINT,
    -- why the last attempt failed, or the mail was returned; null otherwise
    error       TEXT CHECK (length(error) BETWEEN 1 AND 500),
    PRIMARY KEY (invoice_id, number),
    CHECK ((kind = 'reminder') = (hours IS NOT NULL)),
    CHECK ((kind = 'receipt') = (mailbox IS NULL)),
    CHECK (kind = 'receipt' OR token IS NOT NULL),
    CHECK (bounced_at IS NULL OR state = 'failed'),
    CHECK ((state = 'waiting') = (due_at IS NOT NULL)),
    CHECK ((state IN ('sent', 'failed')) = (ended_at IS NOT NULL)),
    CHECK (recipient IS NOT NULL OR due_at IS NULL),
    CHECK (kind <> 'receipt' OR recipient IS NULL OR due_at IS NOT NULL),
    CHECK (error IS NULL OR state IN ('waiting', 'failed'))
);
CREATE INDEX mails_asked ON mails (due_at) WHERE due_at IS NOT NULL AND kind <> 'reminder';
CREATE INDEX mails_reminders ON mails (due_at) WHERE due_at IS NOT NULL AND kind = 'reminder';
CREATE UNIQUE INDEX mails_of_schedule ON mails (invoice_id, hours) WHERE hours IS NOT NULL;
CREATE INDEX mails_of_mailbox ON mails (mailbox, (CASE kind WHEN 'invoice' THEN created_at ELSE ended_at END)) WHERE mailbox IS NOT NULL;
CREATE INDEX mails_of_merchant ON mails (merchant_id, (CASE kind WHEN 'invoice' THEN created_at ELSE ended_at END)) WHERE mailbox IS NOT NULL;
CREATE INDEX mails_by_token ON mails (token) WHERE token IS NOT NULL;

-- The mailboxes that want no mails of a merchant. A row outlives the erasure of the customer, or the merchant could
-- write again.
CREATE TABLE mail_stops (
    merchant_id TEXT NOT NULL,                              -- the merchant
    mailbox     TEXT NOT NULL CHECK (length(mailbox) = 64), -- as in mails
    created_at  BIGINT NOT NULL,                             -- Unix seconds
    PRIMARY KEY (merchant_id, mailbox)
);

-- Erasures of personal data, one row for each request that concerns invoices or has an Idempotency-Key. It is deleted
-- 365 days after it was created.
CREATE TABLE erasures (
    -- ers_…; in the order of the requests
    id          TEXT NOT NULL PRIMARY KEY CHECK (id LIKE 'ers\_%' ESCAPE '\'),
    -- the merchant
    merchant_id TEXT NOT NULL CHECK (length(merchant_id) <= 64),
    -- id of the customer, or else the e-mail address; null once it is erased
    customer    TEXT CHECK (length(customer) BETWEEN 1 AND 254),
    -- id of the customer's newest invoice; empty without one
    through     TEXT NOT NULL,
    -- number of erased invoices
    invoices    BIGINT NOT NULL DEFAULT 0 CHECK (invoices >= 0),
    -- Unix seconds
    created_at  BIGINT NOT NULL,
    -- Unix seconds; null while invoices are left
    finished_at BIGINT,
    CHECK ((customer IS NULL) = (finished_at IS NOT NULL))
);
CREATE UNIQUE INDEX erasures_running ON erasures (merchant_id, customer) WHERE customer IS NOT NULL;

-- The Idempotency-Keys of erasures, which are deleted before their erasure is: a request that is repeated late must not
-- erase newer invoices. A key may name the customer, so it is not stored.
CREATE TABLE erasure_keys (
    -- hash of the key and its scope
    key_hash     TEXT NOT NULL PRIMARY KEY CHECK (length(key_hash) = 66),
    -- hash of the key, its scope and the request, to refuse a different request with the same key
    request_hash TEXT NOT NULL CHECK (length(request_hash) = 66),
    -- the erasure that the request began, or that was running for the customer
    erasure_id   TEXT NOT NULL
);
CREATE INDEX erasure_keys_by_erasure ON erasure_keys (erasure_id);

-- =====================================================================================================================
-- Chains
-- =====================================================================================================================

-- How far each chain is read, and how far it is final. The gap is a range of older blocks that are still to be read,
-- or to be read again.
CREATE TABLE chains (
    -- the chain
    chain_key        TEXT NOT NULL PRIMARY KEY,
    -- the newest block that was read
    indexed_number   BIGINT NOT NULL CHECK (indexed_number >= 0),
    -- its hash
    indexed_hash     TEXT NOT NULL,
    -- its time
    indexed_time     BIGINT NOT NULL,
    -- the newest final block
    confirmed_number BIGINT NOT NULL CHECK (confirmed_number >= 0),
    -- its hash
    confirmed_hash   TEXT NOT NULL,
    -- its time
    confirmed_time   BIGINT NOT NULL,
    -- why the indexer stopped; empty while it runs
    halted           TEXT NOT NULL DEFAULT '',
    -- the next block of the gap to be read; null without a gap
    gap_next         BIGINT CHECK (gap_next >= 0),
    -- the gap's last block; null without a gap
    gap_last         BIGINT CHECK (gap_last <= indexed_number),
    -- that block's time; null without a gap
    gap_last_time    BIGINT,
    -- how often blocks were withdrawn that were read and not final
    revision         BIGINT NOT NULL DEFAULT 0 CHECK (revision >= 0),
    -- payments above this block can depend on blocks up to it that were never read, or on payments that are not
    -- decided; null if no payment does
    unread_last      BIGINT CHECK (unread_last >= 0),
    -- revision that replicas must run to write; 0 before the first
    config_revision  BIGINT NOT NULL DEFAULT 0,
    CHECK (confirmed_number <= indexed_number),
    CHECK ((gap_next IS NULL) = (gap_last IS NULL)),
    CHECK ((gap_next IS NULL) = (gap_last_time IS NULL)),
    CHECK (gap_next <= gap_last)
);

-- Headers of the indexed blocks that are not final, and of some final ones below them.
CREATE TABLE blocks (
    chain_key   TEXT NOT NULL REFERENCES chains (chain_key), -- the chain
    number      BIGINT NOT NULL,                             -- height
    hash        TEXT NOT NULL,                               -- its hash
    parent_hash TEXT NOT NULL,                               -- hash of the block below
    block_time  BIGINT NOT NULL,                             -- its time
    PRIMARY KEY (chain_key, number)
);

-- How far the final blocks of a chain are audited: read a second time, by other means than the first.
CREATE TABLE chain_audits (
    -- the chain
    chain_key   TEXT NOT NULL,
    -- the blocks as they become final, or the blocks of a back-fill
    part        TEXT NOT NULL CHECK (part IN ('new', 'older')),
    -- first block that is not audited
    next_block  BIGINT NOT NULL CHECK (next_block >= 0),
    -- last block of the part; null for the newest final one
    last_block  BIGINT CHECK (last_block >= 0),
    -- blocks with a header that rules out logs of interest
    by_header   BIGINT NOT NULL DEFAULT 0 CHECK (by_header >= 0),
    -- blocks that were compared with all of their receipts
    by_receipts BIGINT NOT NULL DEFAULT 0 CHECK (by_receipts >= 0),
    -- blocks that were compared with another node
    by_node     BIGINT NOT NULL DEFAULT 0 CHECK (by_node >= 0),
    -- blocks that were skipped, because there was no other means or no time
    unverified  BIGINT NOT NULL DEFAULT 0 CHECK (unverified >= 0),
    CHECK ((part = 'new') = (last_block IS NULL)),
    PRIMARY KEY (chain_key, part)
);

-- Transactions that may move a token from or to an address of ours, and that are not recorded: a node left out their
-- logs, or cannot return their receipts.
CREATE TABLE unread_transactions (
    -- chain of the transaction
    chain_key    TEXT NOT NULL,
    -- 0x and 64 hex digits
    tx_hash      TEXT NOT NULL CHECK (length(tx_hash) = 66),
    -- block that holds it
    block_number BIGINT NOT NULL CHECK (block_number >= 0),
    -- how it became known: a payer's lookup, a receipt that was read for another payment, another node, or a log of a
    -- transaction that the nodes do not return, or return with an answer that is too long
    reason       TEXT NOT NULL CHECK (reason IN ('lookup', 'receipt', 'node', 'unreadable', 'oversized')),
    -- the error of the last attempt to read it; empty before
    detail       TEXT NOT NULL CHECK (length(detail) <= 1000),
    -- how many attempts to read it have failed
    attempts     BIGINT NOT NULL CHECK (attempts >= 0),
    -- Unix seconds: when it became known
    found_at     BIGINT NOT NULL,
    -- Unix seconds: when it is read next
    next_at      BIGINT NOT NULL,
    -- Unix seconds: when a person decided that it is not needed; null if it is not dismissed
    dismissed_at BIGINT,
    PRIMARY KEY (chain_key, tx_hash)
);
CREATE INDEX unread_transactions_by_block ON unread_transactions (chain_key, block_number) WHERE dismissed_at IS NULL;

-- The registries that the service was ever configured with. Payers can still pay through each of them, so the events of
-- all are read.
CREATE TABLE registries (
    chain_key  TEXT NOT NULL,                              -- the chain
    address    TEXT NOT NULL CHECK (length(address) = 42), -- contract of the registry
    created_at BIGINT NOT NULL,                            -- when the service first ran with it
    PRIMARY KEY (chain_key, address)
);

-- The chains that the service was ever configured with. A changed configuration is compared with these tables.
CREATE TABLE known_chains (
    -- the chain's key
    chain_key      TEXT PRIMARY KEY,
    -- prefix of the ids of its payments, refunds and sweeps: its first key
    id_key         TEXT NOT NULL,
    -- its chain id, of EIP-155
    chain_id       BIGINT NOT NULL,
    -- hash of the block genesis_number; null until a node was asked
    genesis        TEXT CHECK (length(genesis) = 66),
    -- 0, or startBlock if the nodes have no block 0
    genesis_number BIGINT CHECK (genesis_number >= 0),
    -- 1 if the newest revision configures it
    configured     BIGINT NOT NULL CHECK (configured IN (0, 1)),
    -- when an operator retired it; null if it is in use
    retired_at     BIGINT,
    -- when it was first configured, in Unix seconds
    created_at     BIGINT NOT NULL,
    CHECK ((genesis IS NULL) = (genesis_number IS NULL))
);

-- The tokens that the service was ever configured with.
CREATE TABLE known_tokens (
    -- the chain
    chain_key      TEXT NOT NULL REFERENCES known_chains (chain_key),
    -- contract
    address        TEXT NOT NULL,
    -- code
    currency       TEXT NOT NULL,
    -- decimals of the currency
    decimals       BIGINT NOT NULL CHECK (decimals >= 0),
    -- 1 if the newest revision configures it
    configured     BIGINT NOT NULL CHECK (configured IN (0, 1)),
    -- first block that was read for it; null if the chain was not read before
    first_block    BIGINT CHECK (first_block >= 0),
    -- last block that was read for it, if it is retired; null if it is read
    last_block     BIGINT CHECK (last_block >= 0),
    -- no invoices in it are taken before the gap is filled up to this block; null without one
    missed_through BIGINT CHECK (missed_through >= 0),
    -- when it was first configured, in Unix seconds
    created_at     BIGINT NOT NULL,
    PRIMARY KEY (chain_key, address)
);

-- The deposit factories and authorization relays that the service was ever configured with.
CREATE TABLE known_contracts (
    -- the chain
    chain_key  TEXT NOT NULL REFERENCES known_chains (chain_key),
    -- deposit factory or authorization relay; registries are in their own table
    kind       TEXT NOT NULL CHECK (kind IN ('factory', 'relay')),
    -- contract
    address    TEXT NOT NULL,
    -- when it was first configured, in Unix seconds
    created_at BIGINT NOT NULL,
    PRIMARY KEY (chain_key, kind, address)
);

-- The revisions of the configuration: each time that settings about money changed.
CREATE TABLE revisions (
    number     BIGINT PRIMARY KEY CHECK (number > 0), -- number of the revision, from 1
    hash       TEXT NOT NULL,                         -- SHA-256 of the settings about money, in hex
    created_at BIGINT NOT NULL                        -- when the first replica ran it, in Unix seconds
);

-- =====================================================================================================================
-- Payments
-- =====================================================================================================================

-- Every transfer of a watched token to a settlement address or a deposit address.
CREATE TABLE payments (
    -- pay_…, a hash of chain, transaction and ordinal
    id               TEXT NOT NULL PRIMARY KEY,
    -- orders the payments by when they were first seen
    seen_id          TEXT NOT NULL UNIQUE,
    -- the chain
    chain_key        TEXT NOT NULL REFERENCES chains (chain_key),
    -- the transaction
    tx_hash          TEXT NOT NULL CHECK (length(tx_hash) = 66),
    -- position of the log within its transaction
    ordinal          BIGINT NOT NULL CHECK (ordinal >= 0),
    -- position of the log within its block
    log_index        BIGINT NOT NULL CHECK (log_index >= 0),
    -- the block that holds it
    block_number     BIGINT NOT NULL CHECK (block_number >= 0),
    -- hash of that block
    block_hash       TEXT NOT NULL CHECK (length(block_hash) = 66),
    -- time of that block
    block_time       BIGINT NOT NULL,
    -- contract of the token
    token            TEXT NOT NULL CHECK (length(token) = 42),
    -- code of the currency
    currency         TEXT NOT NULL,
    -- the sender
    from_address     TEXT NOT NULL CHECK (length(from_address) = 42),
    -- the receiver
    to_address       TEXT NOT NULL CHECK (length(to_address) = 42),
    -- in minor units
    amount           TEXT NOT NULL
        CHECK (length(amount) BETWEEN 1 AND 78 AND trim(amount, '0123456789') = '' AND substr(amount, 1, 1) <> '0'),
    -- the last 32 bytes of the transaction's calldata, if they may be a commitment
    commitment_id    TEXT CHECK (length(commitment_id) = 66),
    -- the commitment in the registry's Paid event, if any
    registry_id      TEXT CHECK (length(registry_id) = 66),
    -- nonce of the authorization that made it, if any
    authorization_id TEXT CHECK (length(authorization_id) = 66),
    -- see docs/states.md
    status           TEXT NOT NULL CHECK (status IN ('pending', 'held', 'confirmed', 'orphaned')),
    -- the invoice; null before it is attributed
    invoice_id       TEXT REFERENCES invoices (id),
    -- the merchant of the invoice
    merchant_id      TEXT REFERENCES merchants (id),
    -- how it was attributed
    method           TEXT
        CHECK (method IN ('registry', 'authorization', 'calldata', 'transfer_amount', 'amount', 'tolerance', 'by_hand',
            'by_claim', 'deposit')),
    -- the person who attributed it by hand
    attributed_by    TEXT CHECK (length(attributed_by) BETWEEN 1 AND 200),
    -- when the person did
    attributed_at    BIGINT,
    -- why the person did, when it last happened; null without a note
    attribution_note TEXT CHECK (length(attribution_note) BETWEEN 1 AND 200),
    -- when it was first seen
    observed_at      BIGINT NOT NULL,
    -- when it became final; null unless it is confirmed
    confirmed_at     BIGINT,
    -- sum of its refunds that are not orphaned
    amount_refunded  TEXT NOT NULL DEFAULT '0'
        CHECK (trim(amount_refunded, '0123456789') = '' AND length(amount_refunded) >= 1),
    -- the part of amount_refunded in confirmed refunds
    refunded_final   TEXT NOT NULL DEFAULT '0'
        CHECK (trim(refunded_final, '0123456789') = '' AND length(refunded_final) >= 1),
    -- events.seq of the newest event when it was first seen
    seen_after       BIGINT NOT NULL DEFAULT 0 CHECK (seen_after >= 0),
    -- when a reorg last orphaned it; null without one
    orphaned_at      BIGINT,
    -- the invoice of the deposit address that received it; null at a settlement address. It is in another currency than
    -- the invoice if invoice_id is null
    deposit_of       TEXT,
    -- settlement address of deposit_of, from which it is refunded; null at a settlement address
    settles_to       TEXT CHECK (settles_to IS NULL OR length(settles_to) = 42 AND coalesce(deposit_of, '') <> ''),
    -- kind of the item in the operator's inbox; null if it needs no decision
    item             TEXT CHECK (item IN ('unattributed', 'claimed', 'quarantined')),
    -- the use of the payment, see docs/states.md
    use              TEXT NOT NULL CHECK (use IN ('undecided', 'counted', 'refunding', 'refunded', 'dismissed', 'attributing')),
    -- sum that was refunded, or was to be, while its invoice was open; null for 0
    returned         TEXT CHECK (trim(returned, '0123456789') = '' AND length(returned) >= 1),
    -- state of its screening, see docs/states.md; null if it is not screened
    screening        TEXT CHECK (screening IN ('waiting', 'accepted', 'quarantined', 'released', 'rejected')),
    -- the hook's reason for the verdict, or that it gave no answer; null without one
    screening_reason TEXT CHECK (length(screening_reason) BETWEEN 1 AND 200),
    -- Unix seconds: when it began to wait for the verdict; null unless it waits
    screening_since  BIGINT,
    -- Unix seconds: when the hook is asked next, while it waits
    screening_due    BIGINT NOT NULL DEFAULT 0,
    UNIQUE (chain_key, tx_hash, ordinal),
    CHECK ((status = 'confirmed') = (confirmed_at IS NOT NULL)),
    CHECK (status <> 'held' OR coalesce(screening, '') IN ('waiting', 'quarantined')),
    CHECK ((coalesce(screening, '') = 'waiting') = (screening_since IS NOT NULL)),
    CHECK (screening IS NOT NULL OR screening_reason IS NULL),
    CHECK (coalesce(screening, '') <> 'rejected' OR invoice_id IS NULL),
    CHECK ((attributed_by IS NULL) = (method IS NULL OR method NOT IN ('by_hand', 'by_claim'))),
    CHECK ((attributed_by IS NULL) = (attributed_at IS NULL)),
    CHECK ((invoice_id IS NULL) = (merchant_id IS NULL)),
    CHECK ((invoice_id IS NULL) = (method IS NULL))
);
CREATE INDEX payments_unfinal ON payments (chain_key, block_number) WHERE status = 'pending';
CREATE INDEX payments_by_pair ON payments (from_address, to_address, chain_key, block_number);
CREATE INDEX payments_by_receiver ON payments (to_address, amount, observed_at, seen_id);
CREATE INDEX payments_attributed ON payments (seen_id) WHERE invoice_id IS NOT NULL;
CREATE INDEX payments_by_merchant ON payments (merchant_id, seen_id) WHERE invoice_id IS NOT NULL;
CREATE INDEX payments_by_chain ON payments (chain_key, seen_id) WHERE invoice_id IS NOT NULL;
CREATE INDEX payments_by_merchant_chain ON payments (merchant_id, chain_key, seen_id) WHERE invoice_id IS NOT NULL;
CREATE INDEX payments_unattributed ON payments (seen_id) WHERE invoice_id IS NULL;
CREATE INDEX payments_unattributed_by_chain ON payments (chain_key, seen_id) WHERE invoice_id IS NULL;
CREATE INDEX payments_by_invoice ON payments (invoice_id, block_number, log_index) WHERE invoice_id IS NOT NULL;
-- The payments in replaced blocks that were not final.
CREATE INDEX payments_orphaned ON payments (chain_key, block_number) WHERE status = 'orphaned';
-- Payments that arrived before their invoice expired.
CREATE INDEX payments_in_time ON payments (invoice_id, block_time) WHERE invoice_id IS NOT NULL;
CREATE INDEX payments_of_invoice ON payments (invoice_id, seen_id) WHERE invoice_id IS NOT NULL;
CREATE INDEX payments_by_payer ON payments (from_address, seen_id);
CREATE INDEX payments_by_address ON payments (to_address, seen_id);
CREATE INDEX payments_by_price ON payments (amount, seen_id);
-- By the time of confirmation.
CREATE INDEX payments_by_confirmation ON payments (confirmed_at, seen_id)
    WHERE invoice_id IS NOT NULL AND confirmed_at IS NOT NULL;
CREATE INDEX payments_by_merchant_confirmation ON payments (merchant_id, confirmed_at, seen_id)
    WHERE invoice_id IS NOT NULL AND confirmed_at IS NOT NULL;
CREATE INDEX payments_unattributed_by_confirmation ON payments (confirmed_at, seen_id)
    WHERE invoice_id IS NULL AND confirmed_at IS NOT NULL;
-- To find the payment that a transfer from a settlement address refunds.
CREATE INDEX payments_by_refund_pair ON payments (from_address, settles_to, chain_key, block_number)
    WHERE settles_to IS NOT NULL;
-- Payments that wait for a verdict, by when they began to.
CREATE INDEX payments_waiting ON payments (screening_since) WHERE screening = 'waiting';
CREATE INDEX payments_by_item ON payments (item, seen_id) WHERE item IS NOT NULL;
-- Payments that were confirmed more than a day after their blocks.
CREATE INDEX payments_confirmed_late ON payments (merchant_id, confirmed_at, block_time, invoice_id)
    WHERE invoice_id IS NOT NULL AND confirmed_at - block_time > 86400;
CREATE INDEX payments_orphaned_by_seen ON payments (seen_id) WHERE status = 'orphaned';
CREATE INDEX payments_by_authorization ON payments (authorization_id, from_address) WHERE authorization_id IS NOT NULL;
-- After a recovery, payments to an address that have no invoice may have paid one that was closed in the lost past. An
-- address may have many that have one.
CREATE INDEX payments_unattributed_to ON payments (to_address, chain_key, block_number) WHERE invoice_id IS NULL;

-- The payments without an invoice, a row for each merchant that uses the receiving address.
CREATE TABLE unattributed (
    -- the payment
    seen_id     TEXT NOT NULL REFERENCES payments (seen_id),
    -- a merchant with an invoice that had named the address by then
    merchant_id TEXT NOT NULL REFERENCES merchants (id),
    -- chain of the payment
    chain_key   TEXT NOT NULL,
    -- kind of the item in the merchant's inbox; null if it needs no decision
    item        TEXT CHECK (item IN ('unattributed', 'claimed')),
    PRIMARY KEY (seen_id, merchant_id)
);
CREATE INDEX unattributed_by_merchant ON unattributed (merchant_id, seen_id);
CREATE INDEX unattributed_by_merchant_chain ON unattributed (merchant_id, chain_key, seen_id);
CREATE INDEX unattributed_by_merchant_item ON unattributed (merchant_id, item, seen_id) WHERE item IS NOT NULL;

-- Claims of payers that a payment without an invoice is for their invoice. The merchant decides, by attributing the
-- payment.
CREATE TABLE claims (
    id          TEXT NOT NULL PRIMARY KEY,                -- clm_…; its order is the order of the claims
    payment_id  TEXT NOT NULL REFERENCES payments (id),   -- the payment that is claimed
    invoice_id  TEXT NOT NULL REFERENCES invoices (id),   -- the invoice that it is claimed for
    merchant_id TEXT NOT NULL REFERENCES merchants (id),  -- merchant of the invoice
    signed      BIGINT NOT NULL CHECK (signed IN (0, 1)), -- 1: the account that paid has signed the claim
    created_at  BIGINT NOT NULL,                          -- when it was made
    UNIQUE (payment_id, invoice_id)
);
CREATE INDEX claims_by_merchant ON claims (merchant_id, id);
CREATE INDEX claims_by_invoice ON claims (invoice_id);
-- The claims to a payment, in their order.
CREATE INDEX claims_by_payment ON claims (payment_id, id);
-- The same, signed claims first.
CREATE INDEX claims_signed_first ON claims (payment_id, signed DESC, id);

-- Payments with invoices that depend on older blocks which were not read yet. They are decided in the order of the
-- chain.
CREATE TABLE undecided_payments (
    payment_id   TEXT NOT NULL PRIMARY KEY REFERENCES payments (id), -- the payment
    chain_key    TEXT NOT NULL,                                      -- chain of the payment
    to_address   TEXT NOT NULL,                                      -- receiver of the payment
    block_number BIGINT NOT NULL,                                    -- block of the payment
    log_index    BIGINT NOT NULL                                     -- log of the payment
);
CREATE INDEX undecided_payments_by_receiver ON undecided_payments (to_address, chain_key);
CREATE INDEX undecided_payments_by_place ON undecided_payments (chain_key, block_number, log_index);

-- The times of the blocks that confirmed a payment. The headers in blocks are only kept for a while.
CREATE TABLE payment_confirmations (
    -- the payment
    payment_id TEXT NOT NULL PRIMARY KEY REFERENCES payments (id),
    -- number:seconds with spaces between: how many blocks confirm, and the Unix time of the last
    times      TEXT NOT NULL CHECK (length(times) BETWEEN 3 AND 1000)
);

-- Transactions that a wallet reported to the page of an invoice. They are not checked, and only the timeline shows
-- them.
CREATE TABLE reported_transactions (
    invoice_id  TEXT NOT NULL REFERENCES invoices (id),     -- the invoice
    tx_hash     TEXT NOT NULL CHECK (length(tx_hash) = 66), -- the transaction
    reported_at BIGINT NOT NULL,                            -- Unix seconds
    PRIMARY KEY (invoice_id, tx_hash)
);

-- Transfer notices of external providers, each kept once.
CREATE TABLE notices (
    id                TEXT NOT NULL PRIMARY KEY,     -- ntc_…
    provider          TEXT NOT NULL,                 -- the provider
    type              TEXT NOT NULL,                 -- the type of the notice
    transfer_id       TEXT NOT NULL,                 -- the provider's id
    amount_text       TEXT NOT NULL,                 -- as sent, in major units
    provider_currency TEXT NOT NULL,                 -- as sent
    provider_chain    TEXT NOT NULL,                 -- as sent
    destination       TEXT NOT NULL,                 -- as sent
    amount            TEXT,                          -- minor units; null if the currency is unknown
    currency          TEXT,                          -- our code; null if it is unknown
    chain_key         TEXT,                          -- our key; null if it is unknown
    address           TEXT,                          -- destination on an EVM chain; null otherwise
    payment_id        TEXT REFERENCES payments (id), -- the payment that it announced
    received_at       BIGINT NOT NULL,               -- when it arrived
    UNIQUE (provider, type, transfer_id)
);
CREATE INDEX notices_unlinked ON notices (address, amount) WHERE payment_id IS NULL;
CREATE INDEX notices_by_payment ON notices (payment_id) WHERE payment_id IS NOT NULL;

-- =====================================================================================================================
-- Refunds
-- =====================================================================================================================

-- Every transfer from a settlement address back to the account that made a payment.
CREATE TABLE refunds (
    -- ref_…, a hash of chain, transaction and ordinal
    id               TEXT NOT NULL PRIMARY KEY,
    -- the chain
    chain_key        TEXT NOT NULL REFERENCES chains (chain_key),
    -- the transaction
    tx_hash          TEXT NOT NULL CHECK (length(tx_hash) = 66),
    -- position of the log within its transaction
    ordinal          BIGINT NOT NULL CHECK (ordinal >= 0),
    -- position of the log within its block
    log_index        BIGINT NOT NULL CHECK (log_index >= 0),
    -- the block that holds it
    block_number     BIGINT NOT NULL CHECK (block_number >= 0),
    -- hash of that block
    block_hash       TEXT NOT NULL CHECK (length(block_hash) = 66),
    -- time of that block
    block_time       BIGINT NOT NULL,
    -- contract of the token
    token            TEXT NOT NULL CHECK (length(token) = 42),
    -- code of the currency
    currency         TEXT NOT NULL,
    -- the sender
    from_address     TEXT NOT NULL CHECK (length(from_address) = 42),
    -- the receiver
    to_address       TEXT NOT NULL CHECK (length(to_address) = 42),
    -- in minor units
    amount           TEXT NOT NULL
        CHECK (length(amount) BETWEEN 1 AND 78 AND trim(amount, '0123456789') = '' AND substr(amount, 1, 1) <> '0'),
    -- the last 32 bytes of the transaction's calldata, if they may be a tag
    commitment_id    TEXT CHECK (length(commitment_id) = 66),
    -- the commitment in a registry's Paid event, if any
    registry_id      TEXT CHECK (length(registry_id) = 66),
    -- nonce of the authorization that made it, if any
    authorization_id TEXT CHECK (length(authorization_id) = 66),
    -- see docs/states.md
    status           TEXT NOT NULL CHECK (status IN ('pending', 'confirmed', 'orphaned')),
    -- the payment that is refunded
    payment_id       TEXT NOT NULL REFERENCES payments (id),
    -- when it was first seen
    observed_at      BIGINT NOT NULL,
    -- when it became final; null unless it is confirmed
    confirmed_at     BIGINT,
    UNIQUE (chain_key, tx_hash, ordinal),
    CHECK ((status = 'confirmed') = (confirmed_at IS NOT NULL))
);
CREATE INDEX refunds_unfinal ON refunds (chain_key, block_number) WHERE status = 'pending';
CREATE INDEX refunds_by_payment ON refunds (payment_id);
CREATE INDEX refunds_by_confirmation ON refunds (confirmed_at, id) WHERE confirmed_at IS NOT NULL;

-- Transfers out of settlement addresses above blocks that were never read, which may hold the payments that they
-- refund. They are decided in the order of the chain.
CREATE TABLE undecided_refunds (
    -- ref_…, id of the refund that it may be
    id               TEXT NOT NULL PRIMARY KEY,
    -- the chain
    chain_key        TEXT NOT NULL REFERENCES chains (chain_key),
    -- the transaction
    tx_hash          TEXT NOT NULL CHECK (length(tx_hash) = 66),
    -- position of its log within the transaction
    ordinal          BIGINT NOT NULL CHECK (ordinal >= 0),
    -- position of its log within the block
    log_index        BIGINT NOT NULL CHECK (log_index >= 0),
    -- the block that holds it
    block_number     BIGINT NOT NULL CHECK (block_number >= 0),
    -- hash of that block
    block_hash       TEXT NOT NULL CHECK (length(block_hash) = 66),
    -- time of that block
    block_time       BIGINT NOT NULL,
    -- contract of the token
    token            TEXT NOT NULL CHECK (length(token) = 42),
    -- code of the currency
    currency         TEXT NOT NULL,
    -- the settlement address
    from_address     TEXT NOT NULL CHECK (length(from_address) = 42),
    -- the receiver
    to_address       TEXT NOT NULL CHECK (length(to_address) = 42),
    -- minor units
    amount           TEXT NOT NULL
        CHECK (length(amount) BETWEEN 1 AND 78 AND trim(amount, '0123456789') = '' AND substr(amount, 1, 1) <> '0'),
    -- the last 32 bytes of the transaction's calldata, if they may be a tag
    commitment_id    TEXT CHECK (length(commitment_id) = 66),
    -- the commitment in a registry's Paid event, if any
    registry_id      TEXT CHECK (length(registry_id) = 66),
    -- nonce of the authorization that made it, if any
    authorization_id TEXT CHECK (length(authorization_id) = 66),
    UNIQUE (chain_key, tx_hash, ordinal)
);
CREATE INDEX undecided_refunds_by_place ON undecided_refunds (chain_key, block_number, log_index);
-- To find those that may refund a payment.
CREATE INDEX undecided_refunds_by_accounts ON undecided_refunds (from_address, to_address, chain_key);

-- The list of refunds: prepared ones, and transfers that refund without preparation.
CREATE TABLE refund_records (
    -- ref_…; without a tag it is the id in refunds
    id              TEXT NOT NULL PRIMARY KEY CHECK (id LIKE 'ref\_%' ESCAPE '\'),
    -- sort key of the list
    list_id         TEXT NOT NULL UNIQUE CHECK (list_id <> ''),
    -- the transfer that pays it; null without one
    refund_id       TEXT UNIQUE REFERENCES refunds (id),
    -- the payment that is refunded
    payment_id      TEXT NOT NULL REFERENCES payments (id),
    -- the invoice of the payment; null without one
    invoice_id      TEXT REFERENCES invoices (id),
    -- merchant of that invoice, or the merchant that prepared it; null without both
    merchant_id     TEXT REFERENCES merchants (id),
    -- the chain
    chain_key       TEXT NOT NULL REFERENCES chains (chain_key),
    -- transaction of the transfer
    tx_hash         TEXT CHECK (length(tx_hash) = 66),
    -- see docs/states.md
    status          TEXT NOT NULL
        CHECK (status IN ('awaiting_address', 'awaiting_approval', 'pending', 'confirmed', 'canceled', 'expired',
            'orphaned')),
    -- Unix seconds: when it was prepared, or its transfer observed
    created_at      BIGINT NOT NULL,
    -- last bytes of its transaction's calldata; null for a transfer that was not prepared, and so are all below
    tag             TEXT UNIQUE CHECK (length(tag) = 66),
    -- amount to be paid back
    amount          TEXT
        CHECK (length(amount) BETWEEN 1 AND 78 AND trim(amount, '0123456789') = '' AND substr(amount, 1, 1) <> '0'),
    -- the settlement address of the payment, which sends it
    sender          TEXT CHECK (length(sender) = 42),
    -- null while the payer has not named an address
    recipient       TEXT CHECK (length(recipient) = 42),
    -- contract of the payment's token
    token           TEXT CHECK (length(token) = 42),
    -- null without one
    reason          TEXT CHECK (length(reason) BETWEEN 1 AND 200),
    -- kind of the recipient's account; null without a recipient
    account         TEXT CHECK (account IN ('account', 'contract', 'unknown')),
    -- whether the payer had paid many invoices
    many_invoices   BIGINT CHECK (many_invoices IN (0, 1)),
    -- SHA-256 in hex of the token of the page on which the payer names an address; null without one
    claim_token     TEXT UNIQUE CHECK (length(claim_token) = 64),
    -- signature of the payer, for the recipient; null without one
    claim_signature TEXT CHECK (length(claim_signature) = 132),
    -- Unix seconds: from then on it expires unless it is paid
    expires_at      BIGINT,
    -- Unix seconds: when it was canceled
    canceled_at     BIGINT,
    -- the caller that prepared it with an Idempotency-Key
    idem_scope      TEXT,
    -- that key
    idem_key        TEXT CHECK (length(idem_key) BETWEEN 1 AND 255),
    -- hash of the request, to refuse a different one with the same key
    request_hash    TEXT CHECK (length(request_hash) = 66),
    -- transaction of the submission that is in force, also of a transfer that was not prepared; null without one
    submitted_tx    TEXT CHECK (length(submitted_tx) = 66),
    -- kind of its inbox item, an approval until it expires; null if it needs no decision
    item            TEXT CHECK (item IN ('approval', 'refund_without_payment')),
    -- 1 if the invoice became paid while the prepared refund could still be sent
    invoice_paid    BIGINT CHECK (invoice_paid = 1),
    UNIQUE (payment_id, idem_scope, idem_key),
    CHECK (tag IS NOT NULL OR (refund_id IS NOT NULL AND refund_id = id)),
    CHECK (tag IS NOT NULL OR status IN ('pending', 'confirmed', 'orphaned')),
    CHECK (tag IS NULL OR status <> 'orphaned'),
    CHECK (status <> 'confirmed' OR refund_id IS NOT NULL),
    CHECK ((refund_id IS NULL) = (tx_hash IS NULL)),
    CHECK ((tag IS NULL) = (amount IS NULL)),
    CHECK ((tag IS NULL) = (sender IS NULL)),
    CHECK ((tag IS NULL) = (token IS NULL)),
    CHECK ((tag IS NULL) = (many_invoices IS NULL)),
    CHECK ((tag IS NULL) = (expires_at IS NULL)),
    CHECK (tag IS NOT NULL OR (recipient IS NULL AND claim_token IS NULL AND canceled_at IS NULL AND idem_key IS NULL)),
    CHECK ((recipient IS NULL) = (account IS NULL)),
    CHECK (claim_signature IS NULL OR recipient IS NOT NULL),
    CHECK (recipient IS NOT NULL OR tag IS NULL OR claim_token IS NOT NULL),
    CHECK (status <> 'awaiting_address' OR recipient IS NULL),
    CHECK (status <> 'awaiting_approval' OR recipient IS NOT NULL),
    CHECK (status <> 'canceled' OR canceled_at IS NOT NULL),
    CHECK ((idem_key IS NULL) = (idem_scope IS NULL)),
    CHECK ((idem_key IS NULL) = (request_hash IS NULL))
);
CREATE INDEX refund_records_by_merchant ON refund_records (merchant_id, list_id);
CREATE INDEX refund_records_by_merchant_status ON refund_records (merchant_id, status, list_id);
CREATE INDEX refund_records_by_merchant_chain ON refund_records (merchant_id, chain_key, list_id);
CREATE INDEX refund_records_by_status ON refund_records (status, list_id);
CREATE INDEX refund_records_by_chain ON refund_records (chain_key, list_id);
CREATE INDEX refund_records_by_payment ON refund_records (payment_id, list_id);
-- The refunds that may reserve a part of a payment.
CREATE INDEX refund_records_reserving ON refund_records (payment_id)
    WHERE tag IS NOT NULL OR submitted_tx IS NOT NULL AND status = 'orphaned';
CREATE INDEX refund_records_by_invoice ON refund_records (invoice_id, list_id) WHERE invoice_id IS NOT NULL;
CREATE INDEX refund_records_by_transaction ON refund_records (tx_hash, list_id) WHERE tx_hash IS NOT NULL;
-- To match a transfer without a tag by its amount and accounts, or by its transaction, and to find records that expire.
CREATE INDEX refund_records_awaited ON refund_records (recipient, amount, sender, token, chain_key, (submitted_tx IS NULL), list_id)
    WHERE tag IS NOT NULL AND status = 'pending';
CREATE INDEX refund_records_submitted ON refund_records (submitted_tx, recipient, amount, sender, token, chain_key, list_id)
    WHERE submitted_tx IS NOT NULL AND tag IS NOT NULL AND status = 'pending';
CREATE INDEX refund_records_expiring ON refund_records (chain_key, expires_at)
    WHERE status IN ('awaiting_address', 'awaiting_approval', 'pending');
CREATE INDEX refund_records_by_item ON refund_records (item, list_id) WHERE item IS NOT NULL;
CREATE INDEX refund_records_by_merchant_item ON refund_records (merchant_id, item, list_id) WHERE item IS NOT NULL;

-- Submissions: a person sends the transaction of a prepared refund. A row is never deleted, even if the submission
-- was withdrawn.
CREATE TABLE refund_submissions (
    -- sub_…; in the order of the submissions
    id                TEXT NOT NULL PRIMARY KEY CHECK (id LIKE 'sub\_%' ESCAPE '\'),
    -- the prepared refund
    refund_id         TEXT NOT NULL REFERENCES refund_records (id),
    -- id of the person's key; null at a service without keys
    key_id            TEXT CHECK (length(key_id) BETWEEN 1 AND 64),
    -- name of that key
    submitted_by      TEXT NOT NULL CHECK (length(submitted_by) BETWEEN 1 AND 200),
    -- Unix seconds
    started_at        BIGINT NOT NULL,
    -- hash of the transaction; null while it is not known
    tx_hash           TEXT CHECK (length(tx_hash) = 66),
    -- the hash before, which a contract's owners may have signed, if a reorg dropped tx_hash; else null
    signed_hash       TEXT CHECK (length(signed_hash) = 66),
    -- the person who withdrew it; null if it was not withdrawn
    withdrawn_by      TEXT CHECK (length(withdrawn_by) BETWEEN 1 AND 200),
    -- Unix seconds: when it was withdrawn
    withdrawn_at      BIGINT,
    -- started_at by the schedule's clock
    started_scheduled BIGINT,
    -- the caller that made it with an Idempotency-Key
    idem_scope        TEXT,
    -- that key, by which the caller gets the submission again while it is in force
    idem_key          TEXT CHECK (length(idem_key) BETWEEN 1 AND 255),
    -- hash of the request, to refuse a different one with the same key
    request_hash      TEXT CHECK (length(request_hash) = 66),
    CHECK ((withdrawn_by IS NULL) = (withdrawn_at IS NULL))
);
CREATE UNIQUE INDEX refund_submissions_in_force ON refund_submissions (refund_id) WHERE withdrawn_at IS NULL;
CREATE INDEX refund_submissions_by_refund ON refund_submissions (refund_id, id);

-- =====================================================================================================================
-- Transactions that the service sends
-- =====================================================================================================================

-- Transactions of the on-chain writer. A row is written before the first broadcast.
CREATE TABLE chain_txs (
    -- ctx_…
    id                   TEXT NOT NULL PRIMARY KEY,
    -- the chain
    chain_key            TEXT NOT NULL,
    -- the account that sends it
    sender               TEXT NOT NULL CHECK (length(sender) = 42),
    -- its nonce
    nonce                BIGINT NOT NULL CHECK (nonce >= 0),
    -- kind of the intents that it carries; no meaning with work
    kind                 TEXT NOT NULL CHECK (kind IN ('open', 'close')),
    -- see docs/states.md
    status               TEXT NOT NULL CHECK (status IN ('sent', 'mined', 'failed')),
    -- when it was created
    created_ms           BIGINT NOT NULL,
    -- its highest cost, in billionths of the native coin
    reserved_gwei        BIGINT NOT NULL DEFAULT 0 CHECK (reserved_gwei >= 0),
    -- its actual cost; null while that is not known
    spent_gwei           BIGINT CHECK (spent_gwei >= 0),
    -- when the actual cost became known
    spent_ms             BIGINT CHECK ((spent_ms IS NULL) = (spent_gwei IS NULL)),
    -- sweep or authorization if it carries these; null if it carries intents
    work                 TEXT CHECK (work IN ('sweep', 'authorization')),
    -- the contract that it calls
    destination          TEXT CHECK (length(destination) = 42),
    -- created_ms by the schedule's clock
    created_scheduled_ms BIGINT,
    -- spent_ms by the schedule's clock; null without spent_ms
    spent_scheduled_ms   BIGINT,
    UNIQUE (chain_key, sender, nonce)
);
CREATE INDEX chain_txs_sent ON chain_txs (chain_key) WHERE status = 'sent';
-- Transactions with a known cost, by the time when it became known.
CREATE INDEX chain_txs_spent ON chain_txs (chain_key, spent_ms) WHERE spent_ms IS NOT NULL;
CREATE INDEX chain_txs_unspent ON chain_txs (chain_key, created_ms) WHERE spent_ms IS NULL;
CREATE INDEX chain_txs_by_cost ON chain_txs (spent_ms, id) WHERE spent_ms IS NOT NULL;

-- Every signed form of such a transaction: the first, and those with a higher fee.
CREATE TABLE chain_tx_attempts (
    -- the transaction
    tx_id       TEXT NOT NULL REFERENCES chain_txs (id),
    -- 1 for the first
    number      BIGINT NOT NULL CHECK (number >= 1),
    -- hash of this form
    tx_hash     TEXT NOT NULL UNIQUE CHECK (length(tx_hash) = 66),
    -- 0x and the signed bytes in hex
    raw         TEXT NOT NULL,
    -- wei for a unit of gas
    fee_cap     TEXT NOT NULL,
    -- wei for a unit of gas
    tip_cap     TEXT NOT NULL,
    -- when it was created
    created_ms  BIGINT NOT NULL,
    -- when a node first took it into its pool; null if no node is known to have
    accepted_ms BIGINT,
    PRIMARY KEY (tx_id, number)
);

-- The merchants for which a transaction was signed, so that its cost can be divided.
CREATE TABLE chain_tx_merchants (
    -- the transaction
    tx_id        TEXT NOT NULL REFERENCES chain_txs (id),
    -- the merchant
    merchant_id  TEXT NOT NULL REFERENCES merchants (id),
    -- number of the merchant's items that it was signed to carry: intents, authorizations or deposits
    items        BIGINT NOT NULL CHECK (items > 0),
    -- items of the merchants that come before this one when the cost is divided
    items_before BIGINT NOT NULL CHECK (items_before >= 0),
    -- items of all merchants
    items_total  BIGINT NOT NULL,
    -- chain_txs.spent_ms
    spent_ms     BIGINT,
    PRIMARY KEY (tx_id, merchant_id),
    CHECK (items_before + items <= items_total)
);
CREATE INDEX chain_tx_merchants_by_cost ON chain_tx_merchants (merchant_id, spent_ms, tx_id) WHERE spent_ms IS NOT NULL;

-- How many nonces an account of the operator had used, to notice that the database was restored.
CREATE TABLE operator_nonces (
    -- the chain
    chain_key TEXT NOT NULL CHECK (chain_key <> ''),
    -- account that sends, or sent, the service's transactions
    account   TEXT NOT NULL CHECK (length(account) = 42),
    -- nonces below it are accepted as used, whether or not chain_txs has them: used before the first start, or by other
    -- programs
    known     BIGINT NOT NULL CHECK (known >= 0),
    -- 1: others sent with the account's key, unless a person finds a restore, so its nonces are no evidence of a loss
    shared    BIGINT NOT NULL CHECK (shared IN (0, 1)),
    PRIMARY KEY (chain_key, account)
);

-- Events that the registry must record, written in the transaction that caused them.
CREATE TABLE intents (
    -- int_…
    id            TEXT NOT NULL PRIMARY KEY,
    -- the chain
    chain_key     TEXT NOT NULL,
    -- the invoice
    invoice_id    TEXT NOT NULL REFERENCES invoices (id),
    -- the invoice's commitment
    commitment_id TEXT NOT NULL CHECK (length(commitment_id) = 66),
    -- open or close the commitment
    kind          TEXT NOT NULL CHECK (kind IN ('open', 'close')),
    -- see docs/states.md
    status        TEXT NOT NULL CHECK (status IN ('due', 'sent', 'done')),
    -- the transaction that carries it; null before
    tx_id         TEXT REFERENCES chain_txs (id),
    -- block of its event; done when that is final
    seen_block    BIGINT,
    -- when it was created
    created_at    BIGINT NOT NULL,
    -- the registry that is to record it: its invoice's; null if it is not known
    registry      TEXT CHECK (length(registry) = 42),
    UNIQUE (invoice_id, kind),
    CHECK (status <> 'sent' OR tx_id IS NOT NULL)
);
CREATE INDEX intents_unseen ON intents (chain_key) WHERE status = 'sent' AND seen_block IS NULL;
CREATE INDEX intents_by_tx ON intents (tx_id) WHERE tx_id IS NOT NULL;
CREATE INDEX intents_seen ON intents (chain_key, seen_block) WHERE seen_block IS NOT NULL AND status <> 'done';
CREATE INDEX intents_due ON intents (chain_key, registry, id) WHERE status = 'due';
-- Only intents that are not done are looked up by their commitment.
CREATE INDEX intents_undone_by_commitment ON intents (commitment_id) WHERE status <> 'done';

-- Signed authorizations to transfer (EIP-3009). Each was checked before its row was written. Its payer, token and nonce
-- are bound to one invoice, permanently.
CREATE TABLE authorizations (
    -- aut_…; its order is the order of acceptance
    id                   TEXT NOT NULL PRIMARY KEY CHECK (id LIKE 'aut\_%' ESCAPE '\'),
    -- the chain
    chain_key            TEXT NOT NULL,
    -- contract of the token
    token                TEXT NOT NULL CHECK (length(token) = 42),
    -- the payer
    authorizer           TEXT NOT NULL CHECK (length(authorizer) = 42),
    -- nonce of the authorization; the token takes it once from the authorizer
    nonce                TEXT NOT NULL CHECK (length(nonce) = 66),
    -- the invoice that a transfer with this nonce pays
    invoice_id           TEXT NOT NULL REFERENCES invoices (id),
    -- merchant of the invoice
    merchant_id          TEXT NOT NULL REFERENCES merchants (id),
    -- the receiver
    recipient            TEXT NOT NULL CHECK (length(recipient) = 42),
    -- minor units
    value                TEXT NOT NULL
        CHECK (length(value) BETWEEN 1 AND 78 AND trim(value, '0123456789') = '' AND substr(value, 1, 1) <> '0'),
    -- Unix seconds: valid in blocks after that
    valid_after          BIGINT NOT NULL CHECK (valid_after >= 0),
    -- Unix seconds: valid in blocks before that
    valid_before         BIGINT NOT NULL CHECK (valid_before > valid_after),
    -- as it was submitted, in hex
    signature            TEXT NOT NULL CHECK (substr(signature, 1, 2) = '0x'),
    -- gas that the transfer used in a simulation
    gas                  BIGINT NOT NULL CHECK (gas > 0),
    -- accepted: due; sent: tx_id carries it; paid: the payment is final
    status               TEXT NOT NULL CHECK (status IN ('accepted', 'sent', 'paid', 'refused')),
    -- reason of the refusal
    reason               TEXT CHECK (length(reason) BETWEEN 1 AND 64),
    -- the newest transaction that carries or carried it; null before the first
    tx_id                TEXT REFERENCES chain_txs (id),
    -- its transfer, which a reorg can orphan; null before it was observed
    payment_id           TEXT REFERENCES payments (id),
    -- when it was accepted
    created_ms           BIGINT NOT NULL,
    -- when it became certain that it is paid or refused
    ended_ms             BIGINT,
    -- created_ms by the schedule's clock
    created_scheduled_ms BIGINT,
    UNIQUE (chain_key, token, authorizer, nonce),
    CHECK (status <> 'sent' OR tx_id IS NOT NULL),
    CHECK (status <> 'paid' OR payment_id IS NOT NULL),
    CHECK ((status = 'refused') = (reason IS NOT NULL)),
    CHECK ((status IN ('paid', 'refused')) = (ended_ms IS NOT NULL))
);
-- Authorizations with an open outcome, the first to lapse first.
CREATE INDEX authorizations_open ON authorizations (chain_key, valid_before, id) WHERE status IN ('accepted', 'sent');
CREATE INDEX authorizations_by_invoice ON authorizations (invoice_id, id);
CREATE INDEX authorizations_by_tx ON authorizations (tx_id) WHERE tx_id IS NOT NULL;
-- To count the authorizations within a budget.
CREATE INDEX authorizations_by_time ON authorizations (chain_key, created_ms);
CREATE INDEX authorizations_by_merchant ON authorizations (chain_key, merchant_id, created_ms);
CREATE INDEX authorizations_by_payer ON authorizations (chain_key, authorizer, created_ms);

-- One row for each authorization that a merchant's server had settled by x402. It is written when the invoice is
-- created, before the authorization is accepted.
CREATE TABLE x402_settlements (
    -- the chain
    chain_key     TEXT NOT NULL,
    -- contract of the token
    token         TEXT NOT NULL CHECK (length(token) = 42),
    -- the payer
    authorizer    TEXT NOT NULL CHECK (length(authorizer) = 42),
    -- nonce of the authorization
    nonce         TEXT NOT NULL CHECK (length(nonce) = 66),
    -- the invoice that the authorization pays
    invoice_id    TEXT NOT NULL UNIQUE REFERENCES invoices (id),
    -- merchant of the invoice
    merchant_id   TEXT NOT NULL REFERENCES merchants (id),
    -- the paid resource; the invoice's reference at first
    resource      TEXT NOT NULL CHECK (length(resource) BETWEEN 1 AND 200),
    -- how often it was answered with success
    answers       BIGINT NOT NULL DEFAULT 0 CHECK (answers >= 0),
    -- when it was settled
    created_ms    BIGINT NOT NULL,
    -- SHA-256 in hex of the secret that the merchant's server gave to the client, null without one. A repetition must
    -- have the same.
    client_secret TEXT CHECK (length(client_secret) = 64),
    -- Idempotency-Key of the last request that was answered with success, null without one
    answered_key  TEXT CHECK (length(answered_key) BETWEEN 1 AND 255),
    PRIMARY KEY (chain_key, token, authorizer, nonce)
);

-- =====================================================================================================================
-- Deposit addresses
-- =====================================================================================================================

-- Every deposit address of an invoice that was opened. Transfers to it and from it are always recorded.
CREATE TABLE deposits (
    chain_key   TEXT NOT NULL,                                 -- the chain
    address     TEXT NOT NULL CHECK (length(address) = 42),    -- the deposit address
    invoice_id  TEXT NOT NULL UNIQUE REFERENCES invoices (id), -- the invoice
    merchant_id TEXT NOT NULL REFERENCES merchants (id),       -- merchant of the invoice
    PRIMARY KEY (address, chain_key)
);

-- Received and swept amounts of deposit addresses, in final blocks. An address that received no payment has no row.
CREATE TABLE deposit_balances (
    -- the chain
    chain_key TEXT NOT NULL,
    -- the deposit address
    address   TEXT NOT NULL,
    -- contract of the token
    token     TEXT NOT NULL CHECK (length(token) = 42),
    -- sum of the confirmed payments, counted for the invoice or not
    received  TEXT NOT NULL CHECK (length(received) BETWEEN 1 AND 78 AND trim(received, '0123456789') = ''),
    -- sum of the confirmed sweeps
    swept     TEXT NOT NULL CHECK (length(swept) BETWEEN 1 AND 78 AND trim(swept, '0123456789') = ''),
    -- sum of the confirmed payments after the newest confirmed sweep
    unswept   TEXT NOT NULL CHECK (length(unswept) BETWEEN 1 AND 78 AND trim(unswept, '0123456789') = ''),
    -- block time, in Unix seconds, of a payment since which unswept is more than 0; null while it is 0
    since     BIGINT CHECK ((since IS NULL) = (unswept = '0')),
    PRIMARY KEY (chain_key, address, token),
    FOREIGN KEY (address, chain_key) REFERENCES deposits (address, chain_key)
);

-- Every transfer of a watched token out of a deposit address. It is neither a payment nor a refund.
CREATE TABLE sweeps (
    -- swp_…, a hash of chain, transaction and ordinal
    id               TEXT NOT NULL PRIMARY KEY,
    -- the chain
    chain_key        TEXT NOT NULL REFERENCES chains (chain_key),
    -- the transaction
    tx_hash          TEXT NOT NULL CHECK (length(tx_hash) = 66),
    -- position of the log within its transaction
    ordinal          BIGINT NOT NULL CHECK (ordinal >= 0),
    -- position of the log within its block
    log_index        BIGINT NOT NULL CHECK (log_index >= 0),
    -- the block that holds it
    block_number     BIGINT NOT NULL CHECK (block_number >= 0),
    -- hash of that block
    block_hash       TEXT NOT NULL CHECK (length(block_hash) = 66),
    -- time of that block
    block_time       BIGINT NOT NULL,
    -- contract of the token
    token            TEXT NOT NULL CHECK (length(token) = 42),
    -- code of the currency
    currency         TEXT NOT NULL,
    -- the deposit address
    from_address     TEXT NOT NULL CHECK (length(from_address) = 42),
    -- the settlement address
    to_address       TEXT NOT NULL CHECK (length(to_address) = 42),
    -- minor units
    amount           TEXT NOT NULL
        CHECK (length(amount) BETWEEN 1 AND 78 AND trim(amount, '0123456789') = '' AND substr(amount, 1, 1) <> '0'),
    -- the last 32 bytes of the transaction's calldata, if they may be a commitment
    commitment_id    TEXT CHECK (length(commitment_id) = 66),
    -- the commitment in a registry's Paid event, if any
    registry_id      TEXT CHECK (length(registry_id) = 66),
    -- nonce of the authorization that made it, if any
    authorization_id TEXT CHECK (length(authorization_id) = 66),
    -- see docs/states.md
    status           TEXT NOT NULL CHECK (status IN ('pending', 'confirmed', 'orphaned')),
    -- when it was first seen
    observed_at      BIGINT NOT NULL,
    -- when it became final; null unless it is confirmed
    confirmed_at     BIGINT,
    -- when a reorg last orphaned it; null without one
    orphaned_at      BIGINT,
    -- the invoice of the deposit address
    invoice_id       TEXT NOT NULL REFERENCES invoices (id),
    UNIQUE (chain_key, tx_hash, ordinal),
    FOREIGN KEY (from_address, chain_key) REFERENCES deposits (address, chain_key),
    CHECK ((status = 'confirmed') = (confirmed_at IS NOT NULL))
);
CREATE INDEX sweeps_unfinal ON sweeps (chain_key, block_number) WHERE status = 'pending';
CREATE INDEX sweeps_orphaned ON sweeps (chain_key, block_number) WHERE status = 'orphaned';
CREATE INDEX sweeps_by_invoice ON sweeps (invoice_id, token, block_number, log_index) WHERE status = 'confirmed';
CREATE INDEX sweeps_of_invoice ON sweeps (invoice_id, block_number, log_index);

-- Balances of deposit addresses, by token, from a confirmed payment or a command until the sweep is final.
CREATE TABLE queued_sweeps (
    -- chain, address and token, joined by slashes
    id           TEXT NOT NULL PRIMARY KEY,
    -- the chain
    chain_key    TEXT NOT NULL,
    -- the deposit address
    address      TEXT NOT NULL CHECK (length(address) = 42),
    -- the zero address for the network's coin
    token        TEXT NOT NULL CHECK (length(token) = 42),
    -- merchant of the invoice
    merchant_id  TEXT NOT NULL REFERENCES merchants (id),
    -- deposit_balances.unswept; 0 if no payment in the token is recorded
    amount       TEXT NOT NULL CHECK (length(amount) BETWEEN 1 AND 78 AND trim(amount, '0123456789') = ''),
    -- 1: the token is the invoice's, so that the chain's policy applies; 0: swept only on command
    by_policy    BIGINT NOT NULL CHECK (by_policy IN (0, 1)),
    -- Unix seconds: block time of the first payment, or the time of the request
    queued_at    BIGINT NOT NULL,
    -- Unix seconds: when a command last asked for it; null without one
    requested_at BIGINT,
    -- the transaction that carries it; null without one
    tx_id        TEXT REFERENCES chain_txs (id),
    -- number of final transactions that failed to sweep it
    failures     BIGINT NOT NULL DEFAULT 0 CHECK (failures >= 0),
    -- Unix seconds by the schedule's clock: it is not sent before; null if it may be sent
    retry_at     BIGINT,
    FOREIGN KEY (chain_key, address) REFERENCES deposits (chain_key, address),
    CHECK (by_policy = 1 OR requested_at IS NOT NULL OR amount <> '0')
);
-- The largest first, for each merchant.
CREATE INDEX queued_sweeps_due ON queued_sweeps (chain_key, token, merchant_id, length(amount), amount)
    WHERE by_policy = 1 AND tx_id IS NULL AND retry_at IS NULL;
CREATE INDEX queued_sweeps_requested ON queued_sweeps (chain_key, requested_at, id)
    WHERE requested_at IS NOT NULL AND tx_id IS NULL AND retry_at IS NULL;
CREATE INDEX queued_sweeps_by_tx ON queued_sweeps (tx_id) WHERE tx_id IS NOT NULL;
CREATE INDEX queued_sweeps_in_flight ON queued_sweeps (chain_key) WHERE tx_id IS NOT NULL;
CREATE INDEX queued_sweeps_failed ON queued_sweeps (chain_key, retry_at) WHERE retry_at IS NOT NULL;
CREATE INDEX queued_sweeps_by_chain ON queued_sweeps (chain_key, id);
CREATE INDEX queued_sweeps_by_merchant ON queued_sweeps (chain_key, merchant_id, id);

-- =====================================================================================================================
-- Events and webhooks
-- =====================================================================================================================

-- Notifications of merchants. A row is written in the transaction that made it true.
CREATE TABLE events (
    -- evt_…
    id          TEXT NOT NULL UNIQUE,
    -- in the order of commits: a reader that has seen one has seen all below it
    seq         INTEGER NOT NULL PRIMARY KEY CHECK (seq >= 1),
    -- the type
    type        TEXT NOT NULL
        CHECK (type IN ('invoice.created', 'invoice.paid', 'invoice.expired', 'payment.received', 'payment.refunded',
            'payment.unattributed')),
    -- the object of the event; it has one event of each type
    subject     TEXT NOT NULL,
    -- the merchant
    merchant_id TEXT NOT NULL REFERENCES merchants (id),
    -- the invoice; null for a payment without one
    invoice_id  TEXT REFERENCES invoices (id) CHECK (invoice_id IS NOT NULL OR type = 'payment.unattributed'),
    -- the envelope, byte for byte as it is sent
    body        TEXT NOT NULL,
    -- when it was created
    created_at  BIGINT NOT NULL,
    -- dlv_…, the same at every attempt; null if the merchant wants no events
    delivery_id TEXT,
    UNIQUE (subject, type)
);
-- Each event is in two of these four.
CREATE INDEX events_by_merchant ON events (merchant_id, type, seq) WHERE delivery_id IS NOT NULL;
CREATE INDEX events_by_type ON events (type, seq) WHERE delivery_id IS NOT NULL;
CREATE INDEX events_unwanted_by_merchant ON events (merchant_id, type, seq) WHERE delivery_id IS NULL;
CREATE INDEX events_unwanted_by_type ON events (type, seq) WHERE delivery_id IS NULL;
CREATE INDEX events_by_invoice ON events (invoice_id, seq);

-- Events that retention removed from the log: a row for each merchant, and one for all.
CREATE TABLE event_retention (
    -- empty: all merchants
    merchant_id    TEXT NOT NULL PRIMARY KEY CHECK (length(merchant_id) <= 64),
    -- the highest number of a removed event; events with lower numbers may be stored
    removed_seq    BIGINT NOT NULL CHECK (removed_seq >= 0),
    -- Unix seconds: the removed events were created before
    removed_before BIGINT NOT NULL
);

-- The deliveries that are not finished. A delivery is in this table or in finished_deliveries.
CREATE TABLE deliveries (
    -- the event
    seq         INTEGER NOT NULL PRIMARY KEY REFERENCES events (seq),
    -- merchant of the event
    merchant_id TEXT NOT NULL,
    -- number of finished attempts
    attempts    BIGINT NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    -- number of attempts before the current schedule, if it was sent again
    since       BIGINT NOT NULL DEFAULT 0 CHECK (since BETWEEN 0 AND attempts),
    -- when the next attempt may start
    due_ms      BIGINT NOT NULL,
    -- no attempt but the first starts after it
    deadline_ms BIGINT NOT NULL,
    -- the deliverer that attempts it until due_ms; null if it was not attempted since it was scheduled
    lease_id    TEXT
);
-- The queue of each merchant, and its deadlines.
CREATE INDEX deliveries_due ON deliveries (merchant_id, due_ms, seq);
CREATE INDEX deliveries_last ON deliveries (merchant_id, deadline_ms, seq);
CREATE INDEX deliveries_leased ON deliveries (merchant_id, due_ms) WHERE lease_id IS NOT NULL;
CREATE INDEX deliveries_by_merchant ON deliveries (merchant_id, seq);

-- The deliveries that are finished. One that is sent again goes back to deliveries.
CREATE TABLE finished_deliveries (
    -- the event
    seq         INTEGER NOT NULL PRIMARY KEY REFERENCES events (seq),
    -- merchant of the event
    merchant_id TEXT NOT NULL,
    -- delivered or failed
    status      TEXT NOT NULL CHECK (status IN ('delivered', 'failed')),
    -- number of attempts; 0: it ran out of time while its endpoint was paused
    attempts    BIGINT NOT NULL CHECK (attempts >= 0),
    -- when it was delivered or failed
    finished_ms BIGINT NOT NULL
);
CREATE INDEX failed_deliveries ON finished_deliveries (seq) WHERE status = 'failed';
CREATE INDEX failed_deliveries_by_merchant ON finished_deliveries (merchant_id, seq) WHERE status = 'failed';
CREATE INDEX delivered_deliveries ON finished_deliveries (seq) WHERE status = 'delivered';
CREATE INDEX delivered_deliveries_by_merchant ON finished_deliveries (merchant_id, seq) WHERE status = 'delivered';

-- The log of attempts.
CREATE TABLE attempts (
    seq          BIGINT NOT NULL REFERENCES events (seq),             -- the event
    number       BIGINT NOT NULL CHECK (number >= 1),                 -- 1 for the first
    started_ms   BIGINT NOT NULL,                                     -- when it began
    duration_ms  BIGINT NOT NULL CHECK (duration_ms >= 0),            -- how long it took
    status_code  BIGINT CHECK (status_code BETWEEN 100 AND 999),      -- null if there was no answer
    error        TEXT NOT NULL DEFAULT '',                            -- the error, or empty
    excerpt      TEXT NOT NULL DEFAULT '',                            -- beginning of the answer's body, without secrets
    lookup_ms    BIGINT NOT NULL DEFAULT 0 CHECK (lookup_ms >= 0),    -- part of duration_ms: name lookup
    connect_ms   BIGINT NOT NULL DEFAULT 0 CHECK (connect_ms >= 0),   -- connecting
    handshake_ms BIGINT NOT NULL DEFAULT 0 CHECK (handshake_ms >= 0), -- the TLS handshake
    answer_ms    BIGINT NOT NULL DEFAULT 0 CHECK (answer_ms >= 0),    -- waiting for the answer's first byte
    PRIMARY KEY (seq, number)
);

-- The processes that make attempts.
CREATE TABLE deliverers (
    -- random, of one run of a process
    id        TEXT NOT NULL PRIMARY KEY,
    -- until when it counts as running
    until_ms  BIGINT NOT NULL,
    -- a hash of the merchants with endpoints in its configuration: two with the same hash have the same endpoints
    endpoints TEXT NOT NULL DEFAULT ''
);

-- Open streams of events, one row each. A redelivery needs an endpoint or one of them.
CREATE TABLE listeners (
    -- random, of one stream
    id          TEXT NOT NULL PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 64),
    -- the merchant that gets the events; empty for all merchants
    merchant_id TEXT NOT NULL CHECK (length(merchant_id) <= 64),
    -- type of the events it gets; empty for all types
    type        TEXT NOT NULL,
    -- invoice of these events; empty for all invoices
    invoice_id  TEXT NOT NULL,
    -- it has ended unless this is renewed before
    until_ms    BIGINT NOT NULL
);
CREATE INDEX listeners_by_merchant ON listeners (merchant_id, until_ms);
CREATE INDEX listeners_by_end ON listeners (until_ms);

-- Endpoints of merchants that are not in the configuration: the addresses that get their events.
CREATE TABLE endpoints (
    -- the merchant
    merchant_id     TEXT NOT NULL PRIMARY KEY,
    -- address that gets the events
    url             TEXT NOT NULL,
    -- when the URL last changed
    changed_at      BIGINT NOT NULL,
    -- the events that the merchant wants in addition to the five of the interface, separated by commas
    optional_events TEXT NOT NULL DEFAULT ''
);

-- The secrets that sign for these endpoints.
CREATE TABLE endpoint_secrets (
    -- the merchant
    merchant_id TEXT NOT NULL,
    -- counts the secrets of the merchant
    version     BIGINT NOT NULL CHECK (version >= 1),
    -- base64 of the secret, encrypted under the master key for merchant and version
    sealed      TEXT NOT NULL,
    -- id of that master key
    key_id      TEXT NOT NULL,
    -- staged, active or retiring
    state       TEXT NOT NULL CHECK (state IN ('staged', 'active', 'retiring')),
    -- when it was made
    created_at  BIGINT NOT NULL,
    -- until when a retiring one still signs in addition to the active one
    valid_until BIGINT,
    -- when the secret replaced others with a lost master key; null for others, and once the endpoint has answered a
    -- ping
    replaced_at BIGINT,
    PRIMARY KEY (merchant_id, version),
    CHECK ((state = 'retiring') = (valid_until IS NOT NULL))
);
CREATE UNIQUE INDEX endpoint_secrets_staged ON endpoint_secrets (merchant_id) WHERE state = 'staged';
CREATE UNIQUE INDEX endpoint_secrets_active ON endpoint_secrets (merchant_id) WHERE state = 'active';

-- Additional headers that webhook endpoints require with each event.
CREATE TABLE endpoint_headers (
    -- the owner of the endpoint
    merchant_id TEXT NOT NULL PRIMARY KEY CHECK (length(merchant_id) <= 64),
    -- base64 of the names and values as JSON, encrypted under the master key for the merchant and version 0
    sealed      TEXT NOT NULL CHECK (length(sealed) <= 32768),
    -- id of that master key
    key_id      TEXT NOT NULL
);

-- The circuit breakers of the merchants' endpoints. An endpoint to which no event was sent yet has no row.
CREATE TABLE breakers (
    -- the merchant
    merchant_id TEXT NOT NULL PRIMARY KEY REFERENCES merchants (id),
    -- gone: the endpoint answered that it wants no more events
    state       TEXT NOT NULL CHECK (state IN ('closed', 'open', 'gone')),
    -- 1: its last answer was a quick success
    steady      BIGINT NOT NULL CHECK (steady IN (0, 1)),
    -- limit of concurrent attempts
    allowed     BIGINT NOT NULL CHECK (allowed >= 1),
    -- failed attempts in a row
    failures    BIGINT NOT NULL CHECK (failures >= 0),
    -- timeouts among these failures, in a row
    timeouts    BIGINT NOT NULL CHECK (timeouts BETWEEN 0 AND failures),
    -- how often in a row it was paused
    pauses      BIGINT NOT NULL CHECK (pauses >= 0),
    -- when the first of these pauses began; 0 while closed
    since_ms    BIGINT NOT NULL,
    -- when the pause ends; then one attempt probes it
    until_ms    BIGINT NOT NULL,
    -- when the first of the failures in a row was; 0 without one
    failing_ms  BIGINT NOT NULL DEFAULT 0,
    -- when the last failure was; 0 without one
    failed_ms   BIGINT NOT NULL DEFAULT 0,
    -- of the last failure
    error       TEXT NOT NULL DEFAULT '',
    CHECK ((state = 'closed') = (pauses = 0)),
    CHECK ((failed_ms = 0) = (error = ''))
);

-- =====================================================================================================================
-- Access
-- =====================================================================================================================

-- People who sign in at the dashboard without a key. The rows of api_keys with its person_id hold what a person may do.
CREATE TABLE people (
    -- per_…
    id         TEXT NOT NULL PRIMARY KEY CHECK (id LIKE 'per\_%' ESCAPE '\'),
    -- in lower case; the person has proved to read its mail
    email      TEXT NOT NULL UNIQUE CHECK (length(email) BETWEEN 3 AND 254),
    -- the person's name
    name       TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    -- Unix seconds
    created_at BIGINT NOT NULL,
    -- language of the pages that the person last signed in on, or chose, such as de; empty before
    language   TEXT NOT NULL DEFAULT '' CHECK (length(language) <= 20),
    -- when the person was last to be mailed about requests for approval, Unix seconds; 0 before
    noticed_at BIGINT NOT NULL DEFAULT 0
);

-- Keys of the API and the dashboard.
CREATE TABLE api_keys (
    -- key_…; its order is the order of the keys
    id           TEXT NOT NULL PRIMARY KEY CHECK (id LIKE 'key\_%' ESCAPE '\'),
    -- its owner's name for it
    name         TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    -- its beginning, by which its holder recognises it; empty for a membership
    hint         TEXT NOT NULL CHECK (length(hint) <= 16),
    -- SHA-256 of the key in hexadecimal; the key itself is not stored
    hash         TEXT NOT NULL UNIQUE CHECK (length(hash) = 64),
    -- the merchant with the objects that it gives access to; null for a key of the operator, which gives access to
    -- all
    merchant_id  TEXT CHECK (merchant_id <> ''),
    -- its scopes, with spaces between
    scopes       TEXT NOT NULL CHECK (scopes <> ''),
    -- Unix seconds
    created_at   BIGINT NOT NULL,
    -- Unix seconds: from then on it is refused; null if it does not expire. It may be before created_at, and so may
    -- revoked_at, since the machine's clock may have been set back
    expires_at   BIGINT,
    -- Unix seconds: when it was revoked; null if it was not
    revoked_at   BIGINT,
    -- Unix seconds, up to a minute late: when a request was last accepted with it; null without one
    last_used_at BIGINT,
    -- the key that replaced it in a rotation; null if it was not rotated
    replaced_by  TEXT REFERENCES api_keys (id),
    -- a date, as the header Quittance-Version has it
    api_version  TEXT NOT NULL DEFAULT '2026-11-22' CHECK (length(api_version) = 10),
    -- the person whose membership it is: then nobody knows a text with the hash; null for a key with a secret
    person_id    TEXT REFERENCES people (id),
    CHECK ((person_id IS NULL) = (length(hint) >= 8)),
    CHECK (replaced_by <> id),
    CHECK (replaced_by IS NULL OR expires_at IS NOT NULL OR revoked_at IS NOT NULL)
);
CREATE INDEX api_keys_by_merchant ON api_keys (merchant_id, id);
CREATE INDEX api_keys_by_person ON api_keys (person_id, id);

-- One row. Each change of api_keys increments its version, except a change of last_used_at. A service that has read the
-- keys notices by it that they have changed.
CREATE TABLE api_key_changes (
    id      BIGINT NOT NULL PRIMARY KEY CHECK (id = 1), -- there is one row
    version BIGINT NOT NULL CHECK (version >= 0)        -- the number of changes
);
INSERT INTO api_key_changes (id, version) VALUES (1, 0);

-- Sessions at the dashboard, one for each browser that is signed in. A session that ends is deleted.
CREATE TABLE sessions (
    -- the identifier
    id             TEXT PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 64),
    -- SHA-256 of the cookie's token, in hex
    token_hash     TEXT NOT NULL UNIQUE CHECK (length(token_hash) = 64),
    -- id of the key, or of the person's membership; empty at a service that is open to all
    key_id         TEXT NOT NULL CHECK (length(key_id) <= 64),
    -- the person, who signed in without a key; null if it began by a key
    person_id      TEXT CHECK (length(person_id) BETWEEN 1 AND 64),
    -- merchant of the key; null for the operator
    merchant_id    TEXT CHECK (length(merchant_id) BETWEEN 1 AND 64),
    -- address from which the person signed in
    client         TEXT NOT NULL CHECK (length(client) <= 200),
    -- the browser's User-Agent at that time
    browser        TEXT NOT NULL CHECK (length(browser) <= 200),
    -- language that the person chose, such as de; empty for the browser's
    language       TEXT NOT NULL DEFAULT '' CHECK (length(language) <= 20),
    -- how it began: key, link, invitation, passkey or provider
    began_by       TEXT NOT NULL CHECK (began_by IN ('key', 'link', 'invitation', 'passkey', 'provider')),
    -- Unix seconds
    created_at     BIGINT NOT NULL,
    -- Unix seconds: when the person last proved to hold the key
    confirmed_at   BIGINT NOT NULL,
    -- Unix seconds, up to a minute late
    used_at        BIGINT NOT NULL,
    -- Unix seconds: the end, regardless of use
    expires_at     BIGINT NOT NULL,
    -- Unix seconds: when the first page was last opened; null if it was not
    visited_at     BIGINT,
    -- Unix seconds: when the previous visit ended; null without one
    visited_before BIGINT,
    -- SHA-256 of the token of the last form that must be taken once, in hex; null without one
    last_form      TEXT CHECK (length(last_form) = 64),
    -- ids of the keys that made the link by which it began, separated by spaces; empty without such a link
    parent_keys    TEXT NOT NULL DEFAULT '' CHECK (length(parent_keys) <= 520)
);
CREATE INDEX sessions_by_key ON sessions (key_id, id);
CREATE INDEX sessions_by_person ON sessions (person_id, id);
CREATE INDEX sessions_by_merchant ON sessions (merchant_id, id);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);

-- Links that sign in once. A used link is deleted.
CREATE TABLE sign_in_links (
    -- SHA-256 of the link's token, in hex
    token_hash  TEXT PRIMARY KEY CHECK (length(token_hash) = 64),
    -- id of the key, or of the person's membership, that signs in
    key_id      TEXT NOT NULL CHECK (length(key_id) <= 64),
    -- the person to whom it was mailed; null if a key made it
    person_id   TEXT CHECK (length(person_id) BETWEEN 1 AND 64),
    -- Unix seconds
    expires_at  BIGINT NOT NULL,
    -- ids of the other keys that gave the link's maker access, separated by spaces
    parent_keys TEXT NOT NULL DEFAULT '' CHECK (length(parent_keys) <= 520)
);
CREATE INDEX sign_in_links_by_expiry ON sign_in_links (expires_at);

-- Invitations of people. An accepted one is deleted.
CREATE TABLE invitations (
    -- SHA-256 of the token in the mail, in hex
    token_hash  TEXT NOT NULL PRIMARY KEY CHECK (length(token_hash) = 64),
    -- ivt_…
    id          TEXT NOT NULL UNIQUE CHECK (id LIKE 'ivt\_%' ESCAPE '\'),
    -- to which the mail went, in lower case
    email       TEXT NOT NULL CHECK (length(email) BETWEEN 3 AND 254),
    -- of the person
    name        TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    -- the merchant that invites; null for the operator
    merchant_id TEXT CHECK (length(merchant_id) BETWEEN 1 AND 64),
    -- scopes of the membership, with spaces between
    scopes      TEXT NOT NULL CHECK (scopes <> ''),
    -- id of the key that invites, with which the invitation ends; empty at a service that is open to all
    key_id      TEXT NOT NULL CHECK (length(key_id) <= 64),
    -- ids of the other keys that gave it access, separated by spaces
    parent_keys TEXT NOT NULL DEFAULT '' CHECK (length(parent_keys) <= 520),
    -- Unix seconds
    created_at  BIGINT NOT NULL,
    -- Unix seconds
    expires_at  BIGINT NOT NULL
);
CREATE INDEX invitations_by_merchant ON invitations (merchant_id, id);
CREATE INDEX invitations_by_expiry ON invitations (expires_at);

-- What several people of a merchant must approve. A policy that is off stays as a row, under the lock of which requests
-- are made, approved and used.
CREATE TABLE approval_policies (
    -- the merchant
    merchant_id   TEXT NOT NULL PRIMARY KEY CHECK (length(merchant_id) BETWEEN 1 AND 64),
    -- how many people must approve; 0 if the policy is off
    people        BIGINT NOT NULL CHECK (people = 0 OR people BETWEEN 2 AND 10),
    -- sum of the refunds of a payment above which they must, in minor units; the largest amount for no limit
    refunds_above TEXT NOT NULL
        CHECK (length(refunds_above) BETWEEN 1 AND 78 AND trim(refunds_above, '0123456789') = ''),
    -- amount of a payment above which they must approve its attribution by hand, as refunds_above
    attributions_above TEXT NOT NULL
        CHECK (length(attributions_above) BETWEEN 1 AND 78 AND trim(attributions_above, '0123456789') = ''),
    -- 1: they must approve changes of default and allowed addresses
    addresses     BIGINT NOT NULL CHECK (addresses IN (0, 1)),
    -- 1: they must approve keys and invitations with scopes that write
    keys          BIGINT NOT NULL CHECK (keys IN (0, 1))
);

-- Requests that several people approve an action.
CREATE TABLE approvals (
    -- apr_…
    id           TEXT NOT NULL PRIMARY KEY CHECK (id LIKE 'apr\_%' ESCAPE '\'),
    -- the merchant that acts
    merchant_id  TEXT NOT NULL CHECK (length(merchant_id) BETWEEN 1 AND 64),
    -- kind of the action
    kind         TEXT NOT NULL CHECK (kind IN ('refund', 'attribution', 'addresses', 'key', 'member', 'policy')),
    -- JSON of the exact action
    subject      TEXT NOT NULL CHECK (length(subject) BETWEEN 2 AND 65536),
    -- SHA-256 of subject, in hex
    subject_hash TEXT NOT NULL CHECK (length(subject_hash) = 64),
    -- one that has enough votes, or has expired, may still be requested here
    state        TEXT NOT NULL DEFAULT 'requested' CHECK (state IN ('requested', 'refused', 'expired')),
    -- how many people the policy wanted
    people       BIGINT NOT NULL CHECK (people BETWEEN 2 AND 10),
    -- name of the key or person that asked
    requested_by TEXT NOT NULL CHECK (length(requested_by) BETWEEN 1 AND 200),
    -- id of the person, or ids of the key and of the keys by whose links it asked
    requester    TEXT NOT NULL DEFAULT '',
    -- Unix seconds
    requested_at BIGINT NOT NULL,
    -- until when it can be approved and used, Unix seconds
    expires_at   BIGINT NOT NULL CHECK (expires_at > requested_at),
    -- when the action was made, Unix seconds; null if it was not
    used_at      BIGINT CHECK (used_at IS NULL OR state = 'requested' AND used_at < expires_at)
);
-- An action has one open request.
CREATE UNIQUE INDEX approvals_open ON approvals (merchant_id, kind, subject_hash)
    WHERE used_at IS NULL AND state = 'requested';
CREATE INDEX approvals_by_merchant ON approvals (merchant_id, id);
CREATE INDEX approvals_by_expiry ON approvals (expires_at);

-- Votes of people about requests for approval.
CREATE TABLE approval_votes (
    -- the request
    approval_id TEXT NOT NULL REFERENCES approvals (id) ON DELETE CASCADE,
    -- who voted
    person_id   TEXT NOT NULL REFERENCES people (id),
    -- 1: approves, 0: refuses
    approves    BIGINT NOT NULL CHECK (approves IN (0, 1)),
    -- Unix seconds
    at          BIGINT NOT NULL,
    PRIMARY KEY (approval_id, person_id)
);

-- People who are to be mailed about open requests for approval.
CREATE TABLE approval_notices (
    -- the request
    approval_id TEXT NOT NULL REFERENCES approvals (id) ON DELETE CASCADE,
    -- who may approve
    person_id   TEXT NOT NULL REFERENCES people (id),
    PRIMARY KEY (approval_id, person_id)
);

-- Accounts at OpenID Connect providers that people have connected, to sign in by them.
CREATE TABLE accounts (
    -- whose it is
    person_id    TEXT NOT NULL PRIMARY KEY REFERENCES people (id),
    -- URL of the provider
    issuer       TEXT NOT NULL,
    -- the provider's id of the account
    subject      TEXT NOT NULL CHECK (length(subject) BETWEEN 1 AND 255),
    -- name of the provider when it was connected
    name         TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    -- Unix seconds
    connected_at BIGINT NOT NULL,
    -- Unix seconds; null if it has not signed in
    used_at      BIGINT,
    UNIQUE (issuer, subject)
);

-- Passkeys of people.
CREATE TABLE passkeys (
    -- of the credential, in base64url
    id         TEXT NOT NULL PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 1400),
    -- whose it is
    person_id  TEXT NOT NULL REFERENCES people (id),
    -- the person's name for the device
    name       TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    -- JSON: public key, counter and attestation
    credential TEXT NOT NULL CHECK (length(credential) <= 65536),
    -- Unix seconds
    created_at BIGINT NOT NULL,
    -- Unix seconds; null if it was not used
    used_at    BIGINT
);
CREATE INDEX passkeys_by_person ON passkeys (person_id, created_at);

-- Uses of passkeys that have begun. One that ends is deleted.
CREATE TABLE passkey_ceremonies (
    -- SHA-256 of the page's token, in hex
    token_hash TEXT NOT NULL PRIMARY KEY CHECK (length(token_hash) = 64),
    -- what for
    purpose    TEXT NOT NULL CHECK (purpose IN ('sign-in', 'confirm', 'add')),
    -- session in which it began; null to sign in
    session_id TEXT CHECK (length(session_id) BETWEEN 1 AND 64),
    -- JSON: the challenge, and what the answer must have
    data       TEXT NOT NULL CHECK (length(data) <= 65536),
    -- Unix seconds
    expires_at BIGINT NOT NULL,
    CHECK ((session_id IS NULL) = (purpose = 'sign-in'))
);
CREATE INDEX passkey_ceremonies_by_expiry ON passkey_ceremonies (expires_at);
CREATE INDEX passkey_ceremonies_by_session ON passkey_ceremonies (session_id);

-- The last requests of the API that carried a key, without queries, headers and bodies. The newest of each owner of
-- keys are kept.
CREATE TABLE api_requests (
    -- log_…; in the order in which requests ended
    id          TEXT NOT NULL PRIMARY KEY CHECK (id LIKE 'log\_%' ESCAPE '\'),
    -- owner of the key; empty for the operator
    merchant_id TEXT NOT NULL CHECK (length(merchant_id) <= 64),
    -- empty without a key, at a development service
    key_id      TEXT NOT NULL CHECK (length(key_id) <= 64),
    -- Unix milliseconds: when the request began
    at          BIGINT NOT NULL,
    -- HTTP method
    method      TEXT NOT NULL CHECK (length(method) <= 16),
    -- path with names of variables, such as /api/invoices/{id}
    route       TEXT NOT NULL CHECK (length(route) <= 200),
    -- path of the request, without keys
    path        TEXT NOT NULL CHECK (length(path) <= 200),
    -- HTTP status
    status      INTEGER NOT NULL CHECK (status BETWEEN 100 AND 599),
    -- code of the problem; empty without one
    code        TEXT NOT NULL CHECK (length(code) <= 64),
    -- detail of the problem, without keys
    detail      TEXT NOT NULL CHECK (length(detail) <= 500),
    -- milliseconds
    duration    BIGINT NOT NULL CHECK (duration >= 0),
    -- address of the client
    client      TEXT NOT NULL CHECK (length(client) <= 64),
    -- the header X-Request-Id
    request_id  TEXT NOT NULL CHECK (length(request_id) <= 64),
    -- 1 if there was an Idempotency-Key; 0 if not; null if the route takes no such key
    idempotent  INTEGER CHECK (idempotent IN (0, 1))
);
CREATE INDEX api_requests_by_merchant ON api_requests (merchant_id, id);
CREATE INDEX api_requests_by_key ON api_requests (key_id, id);
CREATE INDEX api_requests_failed ON api_requests (id) WHERE status >= 400;
CREATE INDEX api_requests_broken ON api_requests (id) WHERE status >= 500;

-- Certificates and the account key of ACME.
CREATE TABLE acme_cache (
    -- as package autocert names it: a host name, or the account key
    name       TEXT NOT NULL PRIMARY KEY CHECK (name <> ''),
    -- base64 of the content, encrypted under the master key for the name
    sealed     TEXT NOT NULL,
    -- id of that master key
    key_id     TEXT NOT NULL CHECK (key_id <> ''),
    -- Unix seconds
    updated_at BIGINT NOT NULL
);

-- =====================================================================================================================
-- Audit log
-- =====================================================================================================================

-- An entry for each change that a person or a program asked for, written in the transaction of the change.
-- docs/audit.md describes the hash.
CREATE TABLE audit_entries (
    -- 1 for the first entry; without gaps
    seq         BIGINT NOT NULL PRIMARY KEY CHECK (seq > 0),
    -- when the change was made
    at          BIGINT NOT NULL,
    -- id of a key, config, open, service, or cli: and a user
    actor       TEXT NOT NULL CHECK (length(actor) BETWEEN 1 AND 200),
    -- address of the client; empty for a command
    client      TEXT NOT NULL CHECK (length(client) <= 200),
    -- empty for a command
    request_id  TEXT NOT NULL CHECK (length(request_id) <= 200),
    -- the merchant that may read the entry, in addition to the operator; it may not exist yet
    merchant_id TEXT CHECK (length(merchant_id) BETWEEN 1 AND 64),
    -- kind of the change, such as endpoint.update
    action      TEXT NOT NULL CHECK (length(action) BETWEEN 1 AND 200),
    -- identifier of the changed object
    object      TEXT NOT NULL CHECK (length(object) <= 200),
    -- JSON without secrets; empty before a creation
    before      TEXT NOT NULL CHECK (length(before) <= 8192),
    -- JSON without secrets; empty after a deletion
    after       TEXT NOT NULL CHECK (length(after) <= 8192),
    -- hash of the entry before; zeros for the first
    prev_hash   TEXT NOT NULL CHECK (length(prev_hash) = 64),
    -- SHA-256 of the fields above, in hex
    hash        TEXT NOT NULL UNIQUE CHECK (length(hash) = 64)
);
CREATE INDEX audit_entries_by_merchant ON audit_entries (merchant_id, seq) WHERE merchant_id IS NOT NULL;
CREATE INDEX audit_entries_by_action ON audit_entries (action, seq);

-- The newest entry. Its row is locked while the next one is written.
CREATE TABLE audit_head (
    id   INTEGER NOT NULL PRIMARY KEY CHECK (id = 1), -- there is one row
    seq  BIGINT NOT NULL CHECK (seq >= 0),            -- number of the newest entry; 0 without entries
    hash TEXT NOT NULL CHECK (length(hash) = 64)      -- hash of the newest entry; zeros without entries
);
INSERT INTO audit_head (id, seq, hash)
    VALUES (1, 0, '0000000000000000000000000000000000000000000000000000000000000000');

-- Entries up to a checkpoint are in a file elsewhere, and may be deleted.
CREATE TABLE audit_checkpoints (
    -- number of the last archived entry
    seq        BIGINT NOT NULL PRIMARY KEY CHECK (seq > 0),
    -- hash of that entry
    hash       TEXT NOT NULL CHECK (length(hash) = 64),
    -- Unix seconds: when it was made
    at         BIGINT NOT NULL,
    -- SHA-256 of the file with the entries since the previous checkpoint, in hex
    archive    TEXT NOT NULL CHECK (length(archive) = 64),
    -- Ed25519, in hex; made of the master key
    public_key TEXT NOT NULL CHECK (length(public_key) = 64),
    -- signature of the fields above, in hex
    signature  TEXT NOT NULL CHECK (length(signature) = 128)
);

-- The audit log is append-only.
CREATE TRIGGER audit_entries_update BEFORE UPDATE ON audit_entries
BEGIN
    SELECT RAISE(ABORT, 'entries of the audit log are not changed');
END;

CREATE TRIGGER audit_entries_delete BEFORE DELETE ON audit_entries
WHEN OLD.seq > (SELECT coalesce(max(seq), 0) FROM audit_checkpoints)
BEGIN
    SELECT RAISE(ABORT, 'entries of the audit log are not removed before they are archived');
END;

-- INSERT OR REPLACE removes the rows that conflict, without their delete triggers.
CREATE TRIGGER audit_entries_insert BEFORE INSERT ON audit_entries
WHEN EXISTS (SELECT 1 FROM audit_entries WHERE seq = NEW.seq OR hash = NEW.hash OR rowid = NEW.rowid)
BEGIN
    SELECT RAISE(ABORT, 'entries of the audit log are not replaced');
END;

CREATE TRIGGER audit_head_update BEFORE UPDATE ON audit_head
WHEN NEW.seq <> OLD.seq + 1
BEGIN
    SELECT RAISE(ABORT, 'the head of the audit log moves to the next entry');
END;

CREATE TRIGGER audit_head_delete BEFORE DELETE ON audit_head
BEGIN
    SELECT RAISE(ABORT, 'the head of the audit log is not removed');
END;

CREATE TRIGGER audit_head_insert BEFORE INSERT ON audit_head
BEGIN
    SELECT RAISE(ABORT, 'the head of the audit log is not replaced');
END;

-- =====================================================================================================================
-- Dashboard and reports
-- =====================================================================================================================

-- Decisions about items of the inbox. A decision takes an item out of the inbox while the item has the version. A row
-- is never deleted, even if the decision was undone.
CREATE TABLE inbox_decisions (
    -- dec_…; in the order of the decisions
    id          TEXT NOT NULL PRIMARY KEY CHECK (id LIKE 'dec\_%' ESCAPE '\'),
    -- the owner of the inbox; empty for the inbox of the operator
    merchant_id TEXT NOT NULL CHECK (length(merchant_id) <= 64),
    -- kind of the item
    kind        TEXT NOT NULL
        CHECK (kind IN ('unattributed', 'claimed', 'underpaid', 'overpaid', 'late', 'duplicate', 'approval',
            'refund_without_payment', 'quarantined')),
    -- the payment, invoice or refund of the item
    object_id   TEXT NOT NULL CHECK (length(object_id) BETWEEN 1 AND 64),
    -- version of the item that the person saw
    version     TEXT NOT NULL CHECK (length(version) BETWEEN 1 AND 200),
    -- dismissed, accepted, attributed, released or rejected
    decision    TEXT NOT NULL CHECK (decision IN ('dismissed', 'accepted', 'attributed', 'released', 'rejected')),
    -- why
    reason      TEXT NOT NULL CHECK (length(reason) BETWEEN 1 AND 200),
    -- name of the person's key
    decided_by  TEXT NOT NULL CHECK (length(decided_by) BETWEEN 1 AND 200),
    -- Unix seconds
    decided_at  BIGINT NOT NULL,
    -- the person who undid it; null if it was not undone
    undone_by   TEXT CHECK (length(undone_by) BETWEEN 1 AND 200),
    -- Unix seconds: when it was undone
    undone_at   BIGINT,
    -- the invoice to which the payment is attributed; null unless decision is attributed
    invoice_id  TEXT REFERENCES invoices (id),
    -- Unix seconds: when the attribution is to take effect; until then it can be undone
    applies_at  BIGINT,
    -- Unix seconds: when the attribution, the release or the rejection took effect
    applied_at  BIGINT,
    CHECK ((undone_by IS NULL) = (undone_at IS NULL)),
    CHECK ((decision = 'attributed') = (invoice_id IS NOT NULL) AND (invoice_id IS NULL) = (applies_at IS NULL)),
    CHECK (applied_at IS NULL OR undone_at IS NULL),
    CHECK (applied_at IS NULL OR decision IN ('attributed', 'released', 'rejected'))
);
-- The decisions in force.
CREATE UNIQUE INDEX inbox_decisions_in_force ON inbox_decisions (object_id, kind, version, merchant_id)
    WHERE undone_at IS NULL AND applied_at IS NULL;
CREATE INDEX inbox_decisions_by_invoice ON inbox_decisions (invoice_id, id) WHERE invoice_id IS NOT NULL;
CREATE INDEX inbox_decisions_to_apply ON inbox_decisions (applies_at)
    WHERE applies_at IS NOT NULL AND undone_at IS NULL AND applied_at IS NULL;
CREATE INDEX inbox_decisions_by_merchant ON inbox_decisions (merchant_id, id);
CREATE INDEX inbox_decisions_by_object ON inbox_decisions (object_id, id);

-- Saved filters of lists at the dashboard.
CREATE TABLE saved_filters (
    key_id     TEXT NOT NULL CHECK (length(key_id) <= 64),             -- the person's key; empty without keys
    list       TEXT NOT NULL CHECK (length(list) BETWEEN 1 AND 60),    -- path of its page
    name       TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 60),    -- name of the filter
    query      TEXT NOT NULL CHECK (length(query) BETWEEN 1 AND 4000), -- query of the list's address
    created_at BIGINT NOT NULL,                                        -- Unix seconds
    PRIMARY KEY (key_id, list, name)
);

-- Payments of invoices, and refunds of such payments, that were confirmed in a quarter of an hour. The sums are
-- derived from payments and refunds, and may be emptied if rollup_progress is set to 0.
CREATE TABLE settled_rollups (
    -- empty for all merchants together
    merchant_id TEXT NOT NULL CHECK (length(merchant_id) <= 64),
    -- Unix seconds: when the quarter of an hour begins
    quarter     BIGINT NOT NULL CHECK (quarter % 900 = 0),
    -- the chain
    chain_key   TEXT NOT NULL,
    -- code of the currency
    currency    TEXT NOT NULL,
    -- number of payments
    payments    BIGINT NOT NULL CHECK (payments >= 0),
    -- number of refunds
    refunds     BIGINT NOT NULL CHECK (refunds >= 0),
    -- sum of the payments, in minor units
    gross       TEXT NOT NULL CHECK (trim(gross, '0123456789') = '' AND length(gross) >= 1),
    -- sum of the refunds, in minor units
    refunded    TEXT NOT NULL CHECK (trim(refunded, '0123456789') = '' AND length(refunded) >= 1),
    PRIMARY KEY (merchant_id, quarter, chain_key, currency)
);
CREATE INDEX settled_rollups_by_quarter ON settled_rollups (quarter);

-- Sums of settled_rollups by day, so that a report of all time does not add up quarters of an hour. They are computed
-- again with settled_rollups.
CREATE TABLE settled_days (
    -- empty for all merchants together
    merchant_id TEXT NOT NULL CHECK (length(merchant_id) <= 64),
    -- Unix seconds: when the day begins in UTC. Days before the day of rollup_progress.through are complete
    day         BIGINT NOT NULL CHECK (day % 86400 = 0),
    -- the chain
    chain_key   TEXT NOT NULL,
    -- code of the currency
    currency    TEXT NOT NULL,
    -- number of payments
    payments    BIGINT NOT NULL CHECK (payments >= 0),
    -- number of refunds
    refunds     BIGINT NOT NULL CHECK (refunds >= 0),
    -- sum of the payments, in minor units
    gross       TEXT NOT NULL CHECK (trim(gross, '0123456789') = '' AND length(gross) >= 1),
    -- sum of the refunds, in minor units
    refunded    TEXT NOT NULL CHECK (trim(refunded, '0123456789') = '' AND length(refunded) >= 1),
    PRIMARY KEY (merchant_id, day, chain_key, currency)
);
CREATE INDEX settled_days_by_day ON settled_days (day);

-- How far settled_rollups is complete.
CREATE TABLE rollup_progress (
    id      BIGINT NOT NULL PRIMARY KEY CHECK (id = 1), -- there is one row
    through BIGINT NOT NULL CHECK (through % 900 = 0)   -- Unix seconds: quarters before it are added up
);
INSERT INTO rollup_progress (id, through) VALUES (1, 0);

-- Payments and refunds that were added to a quarter after it may have been added up. Until it is added up again, the
-- quarter's payments are read.
CREATE TABLE stale_rollups (
    object_id TEXT NOT NULL PRIMARY KEY,                 -- payment or refund
    quarter   BIGINT NOT NULL CHECK (quarter % 900 = 0)  -- Unix seconds
);
CREATE INDEX stale_rollups_by_quarter ON stale_rollups (quarter);

-- =====================================================================================================================
-- Replicas, the clock and recovery
-- =====================================================================================================================

-- Work that one replica does at a time.
CREATE TABLE leases (
    name     TEXT NOT NULL PRIMARY KEY, -- name of the work, such as writer:base
    holder   TEXT NOT NULL,             -- holder of the lease; a random id, never a host
    until_ms BIGINT NOT NULL            -- afterwards anyone may take it
);

-- The replicas that would take a lease, so that each knows how many others there are to share work with.
CREATE TABLE lease_candidates (
    name     TEXT NOT NULL,   -- name of the lease
    holder   TEXT NOT NULL,   -- the possible holder, as in leases
    until_ms BIGINT NOT NULL, -- afterwards the replica counts as dead
    PRIMARY KEY (name, holder)
);

-- The schedule's clock, which never jumps. It decides what is due.
CREATE TABLE schedule_clock (
    -- there is one
    id               BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
    -- its time at the last reading
    now_ms           BIGINT NOT NULL CHECK (now_ms >= 0),
    -- time of the clock that it follows at that reading: PostgreSQL's own, or on SQLite the process's
    source_ms        BIGINT NOT NULL,
    -- the smallest source_ms - now_ms of the day of now_ms before offset_since_ms; null before the first reading
    offset_before_ms BIGINT,
    -- the smallest one since offset_since_ms
    offset_ms        BIGINT,
    -- when that day of now_ms began
    offset_since_ms  BIGINT
);

-- A timeline begins when the database was restored from a backup: numbers above the backup's are used again for other
-- events.
CREATE TABLE timelines (
    -- 1 is the first
    number     BIGINT NOT NULL PRIMARY KEY CHECK (number > 0),
    -- random
    id         TEXT NOT NULL UNIQUE CHECK (length(id) BETWEEN 1 AND 40),
    -- Unix seconds
    started_at BIGINT NOT NULL,
    -- number of the last event that it shares with the previous timeline
    last_seq   BIGINT NOT NULL CHECK (last_seq >= 0),
    -- number of the last entry of the audit log that it shares with the previous timeline
    last_audit BIGINT NOT NULL CHECK (last_audit >= 0)
);

-- Whether the database may have been restored from a backup, and has lost a part of its past.
CREATE TABLE recovery (
    -- there is one
    id           BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),
    -- backup: a copy by quittance backup; suspected: a lost past was found
    state        TEXT NOT NULL CHECK (state IN ('normal', 'backup', 'suspected', 'recovering')),
    -- the evidence, for a person
    reason       TEXT NOT NULL CHECK ((reason = '') = (state = 'normal')),
    -- Unix seconds of the beginning of the state; of the copy if the state is backup
    since        BIGINT NOT NULL,
    -- how often replicas have read the schedule's clock; if a replica finds less than it wrote, the database lost a
    -- past
    heartbeats   BIGINT NOT NULL DEFAULT 0,
    -- PostgreSQL's system identifier at the last start of a replica; null if it is not known, and on SQLite
    cluster      TEXT,
    -- oid of the database in the cluster
    database_oid BIGINT,
    -- WAL timeline of the cluster
    wal_timeline BIGINT,
    -- WAL position of the cluster, in bytes
    wal_position BIGINT,
    -- Unix seconds of when serve --isolated first ran on the copy; null if it never did
    isolated_at  BIGINT,
    -- Unix seconds of when the last recovery ended; null once a service has run since
    ended_at     BIGINT
);
INSERT INTO recovery (id, state, reason, since) VALUES (1, 'normal', '', 0);

-- The block at which the last recovery, or one that it continues, began to read a chain.
CREATE TABLE recovery_chains (
    -- the chain
    chain_key     TEXT NOT NULL PRIMARY KEY CHECK (chain_key <> ''),
    -- the first block that the backup had not read, or that has replaced one of its blocks
    from_block    BIGINT NOT NULL CHECK (from_block >= 0),
    -- the newest block at its end; null while it is in progress
    through_block BIGINT CHECK (through_block >= 0)
);

-- Commitments that a recovery found on chain and the database has lost.
CREATE TABLE lost_invoices (
    -- the chain
    chain_key     TEXT NOT NULL CHECK (chain_key <> ''),
    -- commitment of an invoice that the database does not have or, if closed is 1, has as open
    commitment_id TEXT NOT NULL PRIMARY KEY CHECK (length(commitment_id) = 66),
    -- registry that announced it
    registry      TEXT NOT NULL CHECK (length(registry) = 42),
    -- block of the announcement
    block_number  BIGINT NOT NULL CHECK (block_number >= 0),
    -- 1: closed before it expired, so a person decides about the open invoice
    closed        BIGINT NOT NULL CHECK (closed IN (0, 1)),
    -- block in which the registry closed the commitment; null if it is open, or a reorg dropped that block
    closed_block  BIGINT CHECK (closed_block >= 0),
    -- time of that block
    closed_at     BIGINT,
    -- last known transaction that opened or closed the commitment; may be null
    tx_hash       TEXT CHECK (length(tx_hash) = 66)
);
-- closed is 1 for an open invoice until a person decides whether it becomes void. Until then its closed_block in
-- invoices is set: transfers above that block do not pay it, and it does not expire.
CREATE INDEX lost_invoices_closed ON lost_invoices (chain_key, closed_block) WHERE closed = 1;

-- Addresses with invoices that the database lost. Payments to them are recorded without an invoice.
CREATE TABLE lost_addresses (
    -- the chain
    chain_key     TEXT NOT NULL CHECK (chain_key <> ''),
    -- the address
    address       TEXT NOT NULL CHECK (length(address) = 42),
    -- commitment of the lost invoice with this deposit address; null for a settlement address
    commitment_id TEXT CHECK (length(commitment_id) = 66),
    PRIMARY KEY (address, chain_key)
);

-- Transfers out of settlement addresses in the blocks that a recovery has read. They may refund a payment without a
-- record, because the database lost it, so refunds of payments that they may have refunded cannot be sent until a person
-- has checked them.
CREATE TABLE unrecognized_transfers (
    -- id of the refund that the transfer would be
    id           TEXT NOT NULL PRIMARY KEY,
    -- the chain
    chain_key    TEXT NOT NULL CHECK (chain_key <> ''),
    -- the transaction
    tx_hash      TEXT NOT NULL CHECK (length(tx_hash) = 66),
    -- block that held it when it was first seen
    block_number BIGINT NOT NULL CHECK (block_number >= 0),
    -- contract of the token
    token        TEXT NOT NULL CHECK (length(token) = 42),
    -- currency of the token
    currency     TEXT NOT NULL,
    -- the settlement address
    from_address TEXT NOT NULL CHECK (length(from_address) = 42),
    -- the receiver
    to_address   TEXT NOT NULL CHECK (length(to_address) = 42),
    -- in minor units
    amount       TEXT NOT NULL CHECK (length(amount) BETWEEN 1 AND 78 AND trim(amount, '0123456789') = ''),
    -- 1: a person has checked it
    checked      BIGINT NOT NULL CHECK (checked IN (0, 1))
);
CREATE INDEX unrecognized_transfers_by_sender ON unrecognized_transfers (from_address, chain_key, token);

-- The hosts of the public URLs that the service ever had.
CREATE TABLE public_hosts (
    -- in lower case, without a port
    host    TEXT NOT NULL PRIMARY KEY CHECK (length(host) <= 253),
    -- Unix seconds of the last start with it. Links to it lead to the newest one
    used_at BIGINT NOT NULL
);
