-- For the timeline of an invoice: what payers' wallets sent, and the blocks that confirmed payments.

-- +goose Up

-- Transactions that the page of an invoice was given by a wallet. Nobody has checked them, and nothing but the timeline shows them.
CREATE TABLE reported_transactions (
    invoice_id  TEXT   NOT NULL REFERENCES invoices (id),
    tx_hash     TEXT   NOT NULL CHECK (length(tx_hash) = 66),
    reported_at BIGINT NOT NULL,                                   -- Unix seconds
    PRIMARY KEY (invoice_id, tx_hash)
);

-- Of confirmed payments, the times of blocks that confirmed them. The headers in blocks are kept for a while alone.
CREATE TABLE payment_confirmations (
    payment_id TEXT NOT NULL PRIMARY KEY REFERENCES payments (id),
    times      TEXT NOT NULL CHECK (length(times) BETWEEN 3 AND 1000) -- number:seconds with spaces between: how many blocks confirm, and the Unix time of the last
);
