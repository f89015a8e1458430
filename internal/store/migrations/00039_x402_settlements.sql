-- Payments of merchants' own resources by x402.

-- +goose Up

-- One for each authorization that a merchant's server had settled. It is written when the invoice is created, before the authorization is accepted.
CREATE TABLE x402_settlements (
    chain_key   TEXT   NOT NULL,
    token       TEXT   NOT NULL CHECK (length(token) = 42),
    authorizer  TEXT   NOT NULL CHECK (length(authorizer) = 42),  -- who pays
    nonce       TEXT   NOT NULL CHECK (length(nonce) = 66),       -- of the authorization
    invoice_id  TEXT   NOT NULL UNIQUE REFERENCES invoices (id),  -- that the authorization pays
    merchant_id TEXT   NOT NULL REFERENCES merchants (id),        -- of the invoice
    resource    TEXT   NOT NULL CHECK (length(resource) BETWEEN 1 AND 200), -- that is paid for; the invoice's reference at first
    answers     BIGINT NOT NULL DEFAULT 0 CHECK (answers >= 0),   -- how often it was answered with success
    created_ms  BIGINT NOT NULL,
    PRIMARY KEY (chain_key, token, authorizer, nonce)
);
