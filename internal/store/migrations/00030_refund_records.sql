-- The list of refunds: those that were prepared, and the transfers that paid back without being prepared.

-- +goose Up

CREATE TABLE refund_records (
    id             TEXT   NOT NULL PRIMARY KEY CHECK (id LIKE 'ref\_%' ESCAPE '\'), -- ref_…; without a tag it is the id in refunds
    list_id        TEXT   NOT NULL UNIQUE CHECK (list_id <> ''),          -- its order is that of the list
    refund_id      TEXT   UNIQUE REFERENCES refunds (id),                 -- the transfer that pays it; null without one
    payment_id     TEXT   NOT NULL REFERENCES payments (id),              -- what is paid back
    invoice_id     TEXT   REFERENCES invoices (id),                       -- of the payment; null while it has none
    merchant_id    TEXT   REFERENCES merchants (id),                      -- of that invoice, or who prepared it; null for neither
    chain_key      TEXT   NOT NULL REFERENCES chains (chain_key),
    tx_hash        TEXT   CHECK (length(tx_hash) = 66),                   -- of the transfer
    status         TEXT   NOT NULL CHECK (status IN ('awaiting_address', 'awaiting_approval', 'pending', 'confirmed', 'canceled', 'expired', 'orphaned')),
    created_at     BIGINT NOT NULL,                                       -- Unix seconds: when it was prepared, or its transfer observed

    tag            TEXT   UNIQUE CHECK (length(tag) = 66),                -- that its transaction's calldata ends in; null for a transfer that was not prepared, and so are all below
    amount         TEXT   CHECK (length(amount) BETWEEN 1 AND 78 AND trim(amount, '0123456789') = '' AND substr(amount, 1, 1) <> '0'), -- to be paid back
    recipient      TEXT   CHECK (length(recipient) = 42),                 -- null while the payer has not named an address
    reason         TEXT   CHECK (length(reason) BETWEEN 1 AND 200),       -- null if none was given
    account        TEXT   CHECK (account IN ('account', 'contract', 'unknown')), -- what the recipient was; null without one
    many_invoices  BIGINT CHECK (many_invoices IN (0, 1)),                -- whether the payer had paid many invoices
    claim_token    TEXT   UNIQUE CHECK (length(claim_token) >= 26),       -- of the page on which the payer names an address; null without one
    claim_signature TEXT  CHECK (length(claim_signature) = 132),           -- of the payer, for the recipient; null without one
    expires_at     BIGINT,                                                -- Unix seconds: from then on it expires unless it is paid
    canceled_at    BIGINT,                                                -- Unix seconds: when it was canceled
    idem_scope     TEXT,                                                  -- who prepared it with an Idempotency-Key
    idem_key       TEXT   CHECK (length(idem_key) BETWEEN 1 AND 255),     -- that key
    request_hash   TEXT   CHECK (length(request_hash) = 66),              -- of what was asked for, to refuse another request with the key

    UNIQUE (payment_id, idem_scope, idem_key),
    CHECK (tag IS NOT NULL OR (refund_id IS NOT NULL AND refund_id = id)),
    CHECK (tag IS NOT NULL OR status IN ('pending', 'confirmed', 'orphaned')),
    CHECK (tag IS NULL OR status <> 'orphaned'),
    CHECK (status <> 'confirmed' OR refund_id IS NOT NULL),
    CHECK ((refund_id IS NULL) = (tx_hash IS NULL)),
    CHECK ((tag IS NULL) = (amount IS NULL)),
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
CREATE INDEX refund_records_by_invoice ON refund_records (invoice_id, list_id) WHERE invoice_id IS NOT NULL;
CREATE INDEX refund_records_by_transaction ON refund_records (tx_hash, list_id) WHERE tx_hash IS NOT NULL;
-- To match a transfer without a tag, and to find those that expire.
CREATE INDEX refund_records_awaited ON refund_records (recipient, amount, list_id) WHERE tag IS NOT NULL AND status = 'pending';
CREATE INDEX refund_records_expiring ON refund_records (chain_key, expires_at) WHERE status IN ('awaiting_address', 'awaiting_approval', 'pending');
