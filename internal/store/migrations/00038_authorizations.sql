-- Transfers that payers signed and the service sends (EIP-3009).

-- +goose Up

-- Each was checked before its row was written. Its payer, token and nonce are bound to one invoice for ever.
CREATE TABLE authorizations (
    id           TEXT   NOT NULL PRIMARY KEY CHECK (id LIKE 'aut\_%' ESCAPE '\'), -- aut_…; its order is the order of acceptance
    chain_key    TEXT   NOT NULL,
    token        TEXT   NOT NULL CHECK (length(token) = 42),
    authorizer   TEXT   NOT NULL CHECK (length(authorizer) = 42),     -- who pays
    nonce        TEXT   NOT NULL CHECK (length(nonce) = 66),          -- that the token takes once of the authorizer
    invoice_id   TEXT   NOT NULL REFERENCES invoices (id),            -- that a transfer by this nonce pays
    merchant_id  TEXT   NOT NULL REFERENCES merchants (id),           -- of the invoice
    recipient    TEXT   NOT NULL CHECK (length(recipient) = 42),      -- who is paid
    value        TEXT   NOT NULL CHECK (length(value) BETWEEN 1 AND 78 AND trim(value, '0123456789') = '' AND substr(value, 1, 1) <> '0'), -- minor units
    valid_after  BIGINT NOT NULL CHECK (valid_after >= 0),            -- Unix seconds: valid in blocks after that
    valid_before BIGINT NOT NULL CHECK (valid_before > valid_after),  -- Unix seconds: valid in blocks before that
    signature    TEXT   NOT NULL CHECK (substr(signature, 1, 2) = '0x'), -- as it was submitted, in hex
    gas          BIGINT NOT NULL CHECK (gas > 0),                     -- that the transfer used in a simulation
    status       TEXT   NOT NULL CHECK (status IN ('accepted', 'sent', 'paid', 'refused')), -- accepted: due; sent: tx_id carries it; paid: the payment is final
    reason       TEXT   CHECK (length(reason) BETWEEN 1 AND 64),      -- why it is refused
    tx_id        TEXT   REFERENCES chain_txs (id),                    -- the newest transaction that carries or carried it; null if none ever did
    payment_id   TEXT   REFERENCES payments (id),                     -- its transfer, which a reorg can orphan; null before it was observed
    created_ms   BIGINT NOT NULL,                                     -- when it was accepted
    ended_ms     BIGINT,                                              -- when it was paid or refused for certain
    UNIQUE (chain_key, token, authorizer, nonce),
    CHECK (status <> 'sent' OR tx_id IS NOT NULL),
    CHECK (status <> 'paid' OR payment_id IS NOT NULL),
    CHECK ((status = 'refused') = (reason IS NOT NULL)),
    CHECK ((status IN ('paid', 'refused')) = (ended_ms IS NOT NULL))
);
-- Those whose outcome is open, the first to lapse first.
CREATE INDEX authorizations_open ON authorizations (chain_key, valid_before) WHERE status IN ('accepted', 'sent');
CREATE INDEX authorizations_by_invoice ON authorizations (invoice_id, id);
CREATE INDEX authorizations_by_tx ON authorizations (tx_id) WHERE tx_id IS NOT NULL;
-- To count what budgets bound.
CREATE INDEX authorizations_by_time ON authorizations (chain_key, created_ms);
CREATE INDEX authorizations_by_merchant ON authorizations (chain_key, merchant_id, created_ms);
CREATE INDEX authorizations_by_payer ON authorizations (chain_key, authorizer, created_ms);
