-- Sums of settled payments, so that the dashboard need not add up every payment of two months; when payers opened invoices; and filters that people keep.

-- +goose Up

-- What was confirmed in a quarter of an hour: payments of invoices, and refunds of such payments. It is derived from payments and refunds, and may be emptied with rollup_progress set to 0.
CREATE TABLE settled_rollups (
    merchant_id TEXT   NOT NULL CHECK (length(merchant_id) <= 64), -- empty for all merchants together
    quarter     BIGINT NOT NULL CHECK (quarter % 900 = 0),         -- Unix seconds: when the quarter of an hour begins
    chain_key   TEXT   NOT NULL,
    currency    TEXT   NOT NULL,
    payments    BIGINT NOT NULL CHECK (payments >= 0),             -- how many
    refunds     BIGINT NOT NULL CHECK (refunds >= 0),              -- how many
    gross       TEXT   NOT NULL CHECK (trim(gross, '0123456789') = '' AND length(gross) >= 1),       -- sum of the payments, in minor units
    refunded    TEXT   NOT NULL CHECK (trim(refunded, '0123456789') = '' AND length(refunded) >= 1), -- sum of the refunds, in minor units
    PRIMARY KEY (merchant_id, quarter, chain_key, currency)
);
CREATE INDEX settled_rollups_by_quarter ON settled_rollups (quarter);

-- How far settled_rollups is complete.
CREATE TABLE rollup_progress (
    id      BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),            -- there is one row
    through BIGINT NOT NULL CHECK (through % 900 = 0)              -- Unix seconds: quarters before it are added up
);
INSERT INTO rollup_progress (id, through) VALUES (1, 0);

-- Payments and refunds that were added to a quarter after it may have been added up. Until that is done again, the quarter's payments are read.
CREATE TABLE stale_rollups (
    object_id TEXT   NOT NULL PRIMARY KEY,                         -- payment or refund
    quarter   BIGINT NOT NULL CHECK (quarter % 900 = 0)            -- Unix seconds
);
CREATE INDEX stale_rollups_by_quarter ON stale_rollups (quarter);

-- When the page of an invoice was first opened.
CREATE TABLE invoice_openings (
    invoice_id TEXT   NOT NULL PRIMARY KEY REFERENCES invoices (id),
    opened_at  BIGINT NOT NULL                                     -- Unix seconds
);

-- Filters of lists that people keep at the dashboard.
CREATE TABLE saved_filters (
    key_id     TEXT   NOT NULL CHECK (length(key_id) <= 64),       -- of the person; empty at a service without keys
    list       TEXT   NOT NULL CHECK (length(list) BETWEEN 1 AND 60),    -- path of its page
    name       TEXT   NOT NULL CHECK (length(name) BETWEEN 1 AND 60),
    query      TEXT   NOT NULL CHECK (length(query) BETWEEN 1 AND 4000), -- of the list's address
    created_at BIGINT NOT NULL,                                    -- Unix seconds
    PRIMARY KEY (key_id, list, name)
);
