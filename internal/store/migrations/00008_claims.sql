-- What payers say about payments that belong to no invoice, and which further events merchants want.

-- +goose Up

-- Payers who say that a payment without an invoice is for theirs. The merchant decides, by attributing the payment.
CREATE TABLE claims (
    id          TEXT   NOT NULL PRIMARY KEY,               -- clm_…; its order is the order of the claims
    payment_id  TEXT   NOT NULL REFERENCES payments (id),
    invoice_id  TEXT   NOT NULL REFERENCES invoices (id),  -- that it is claimed for
    merchant_id TEXT   NOT NULL REFERENCES merchants (id), -- of the invoice
    signed      BIGINT NOT NULL CHECK (signed IN (0, 1)),  -- whether the account that paid has signed the claim
    created_at  BIGINT NOT NULL,
    UNIQUE (payment_id, invoice_id)
);
CREATE INDEX claims_by_merchant ON claims (merchant_id, id);
CREATE INDEX claims_by_invoice ON claims (invoice_id);

-- The events beside the five of the interface that the merchant wants, with commas between. They belong to the endpoint.
ALTER TABLE endpoints ADD COLUMN optional_events TEXT NOT NULL DEFAULT '';

-- To find the invoices with the nearest amounts. In numeric order, of equal amounts the newest first.
CREATE INDEX invoices_near ON invoices (merchant_address, chain_key, token, length(amount), amount, id DESC) WHERE status IN ('open', 'expired');
