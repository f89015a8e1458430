-- Streams that get redelivered events, such as those of quittance listen.

-- +goose Up

-- A row for each such stream that is open. A redelivery needs an endpoint or one of them.
CREATE TABLE listeners (
    id          TEXT   NOT NULL PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 64), -- random, of one stream
    merchant_id TEXT   NOT NULL CHECK (length(merchant_id) <= 64), -- whose events it gets; empty for all merchants
    type        TEXT   NOT NULL,                                   -- of the events it gets; empty for all types
    invoice_id  TEXT   NOT NULL,                                   -- that these are about; empty for all invoices
    until_ms    BIGINT NOT NULL                                    -- it has ended unless it is noted again before
);
CREATE INDEX listeners_by_merchant ON listeners (merchant_id, until_ms);
CREATE INDEX listeners_by_end ON listeners (until_ms);
