-- Payment links: pages on which payers make invoices of a merchant.

-- +goose Up

CREATE TABLE payment_links (
    id               TEXT   NOT NULL PRIMARY KEY CHECK (id LIKE 'lnk\_%' ESCAPE '\'),  -- lnk_…
    merchant_id      TEXT   NOT NULL REFERENCES merchants (id),                        -- whose invoices it makes
    slug             TEXT   NOT NULL CHECK (length(slug) BETWEEN 1 AND 64),            -- last part of the page's path
    archived         BIGINT NOT NULL CHECK (archived IN (0, 1)),                       -- 1: it makes no invoices any more
    title            TEXT   NOT NULL CHECK (length(title) BETWEEN 1 AND 200),          -- headline of the page
    description      TEXT   CHECK (length(description) BETWEEN 1 AND 500),             -- text below it; null without one
    amount           TEXT   CHECK (length(amount) BETWEEN 1 AND 78 AND trim(amount, '0123456789') = '' AND substr(amount, 1, 1) <> '0'),             -- minor units; null if the payer enters it
    min_amount       TEXT   CHECK (length(min_amount) BETWEEN 1 AND 78 AND trim(min_amount, '0123456789') = '' AND substr(min_amount, 1, 1) <> '0'), -- least that a payer may enter; null for no bound
    max_amount       TEXT   CHECK (length(max_amount) BETWEEN 1 AND 78 AND trim(max_amount, '0123456789') = '' AND substr(max_amount, 1, 1) <> '0'), -- most that a payer may enter; null for no bound
    currency         TEXT   NOT NULL CHECK (length(currency) >= 1),                    -- of the invoices
    chain_key        TEXT   NOT NULL CHECK (length(chain_key) >= 1),                   -- of the invoices
    merchant_address TEXT   CHECK (length(merchant_address) = 42),                     -- where the invoices settle; null for the merchant's default address
    line_item        TEXT   CHECK (length(line_item) BETWEEN 1 AND 200),               -- label of the invoices' line item; null if they have none
    reference_prefix TEXT   CHECK (length(reference_prefix) BETWEEN 1 AND 180),        -- of the invoices' references; null if they have none
    collection       TEXT   CHECK (collection IN ('direct', 'deposit')),               -- of the invoices; null for the merchant's
    return_url       TEXT   CHECK (length(return_url) BETWEEN 1 AND 2048),             -- of the invoices; null without one
    cancel_url       TEXT   CHECK (length(cancel_url) BETWEEN 1 AND 2048),             -- of the invoices; null without one
    lifetime         BIGINT NOT NULL CHECK (lifetime > 0),                             -- seconds from an invoice's creation to its expiry
    created_at       BIGINT NOT NULL,                                                  -- Unix seconds
    changed_at       BIGINT NOT NULL,                                                  -- Unix seconds
    idem_scope       TEXT,                                                             -- who created it with an Idempotency-Key
    idem_key         TEXT   CHECK (length(idem_key) BETWEEN 1 AND 255),                -- that key
    request_hash     TEXT   CHECK (length(request_hash) = 66),                         -- of what was asked for, to refuse another request with the key

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
