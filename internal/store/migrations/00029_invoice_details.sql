-- What merchants say of their invoices besides the terms, and where the checkout page links to.

-- +goose Up

-- An invoice of which nothing is said has no row.
CREATE TABLE invoice_details (
    invoice_id       TEXT   NOT NULL PRIMARY KEY REFERENCES invoices (id),
    merchant_id      TEXT   NOT NULL,                                                             -- of the invoice
    reference        TEXT   CHECK (length(reference) BETWEEN 1 AND 200),                          -- what the merchant calls the invoice; null without one
    unique_reference BIGINT NOT NULL DEFAULT 0 CHECK (unique_reference IN (0, 1)),                -- 1: reserved_references has the reference while the invoice is a draft or open
    description      TEXT   CHECK (length(description) BETWEEN 1 AND 500),                        -- shown on the checkout page; null without one
    customer_id      TEXT   CHECK (length(customer_id) BETWEEN 1 AND 200),                        -- what the merchant calls the customer; null if it is not given
    customer_email   TEXT   CHECK (length(customer_email) BETWEEN 1 AND 254),                     -- null if it is not given
    return_url       TEXT   CHECK (length(return_url) BETWEEN 1 AND 2048),                        -- link of the checkout page once the invoice is paid; null without one
    cancel_url       TEXT   CHECK (length(cancel_url) BETWEEN 1 AND 2048),                        -- link of the checkout page while it is not paid; null without one
    metadata         TEXT   CHECK (length(metadata) BETWEEN 3 AND 400000),                        -- JSON object of texts, as in invoice_metadata; null if it is empty
    CHECK (unique_reference = 0 OR reference IS NOT NULL)
);
CREATE INDEX invoice_details_by_reference ON invoice_details (reference, invoice_id) WHERE reference IS NOT NULL;
CREATE INDEX invoice_details_by_merchant_reference ON invoice_details (merchant_id, reference, invoice_id) WHERE reference IS NOT NULL;

-- The pairs of invoice_details.metadata, by which invoices are found.
CREATE TABLE invoice_metadata (
    invoice_id  TEXT NOT NULL REFERENCES invoices (id),
    merchant_id TEXT NOT NULL,                                          -- of the invoice
    key         TEXT NOT NULL CHECK (length(key) BETWEEN 1 AND 40),
    value       TEXT NOT NULL CHECK (length(value) <= 500),
    PRIMARY KEY (invoice_id, key)
);
CREATE INDEX invoice_metadata_by_pair ON invoice_metadata (key, value, invoice_id);
CREATE INDEX invoice_metadata_by_merchant_pair ON invoice_metadata (merchant_id, key, value, invoice_id);

-- Which invoice has a reference that was created as unique. The row stays when the invoice is closed, and is then replaced by that of the next invoice.
CREATE TABLE reserved_references (
    merchant_id TEXT NOT NULL,                                          -- of the invoice
    reference   TEXT NOT NULL CHECK (length(reference) BETWEEN 1 AND 200),
    invoice_id  TEXT NOT NULL UNIQUE REFERENCES invoices (id),
    PRIMARY KEY (merchant_id, reference)
);

ALTER TABLE merchant_profiles ADD COLUMN return_hosts TEXT NOT NULL DEFAULT '[]' CHECK (length(return_hosts) <= 16384); -- JSON array of the only hosts of return_url and cancel_url; empty array if every host is allowed
