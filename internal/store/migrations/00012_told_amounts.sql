-- Amounts that payers were told become rows of their own, and invoices are bound to the height of their chain.

-- +goose Up

ALTER TABLE invoices ADD COLUMN from_block BIGINT NOT NULL DEFAULT 0 CHECK (from_block >= 0); -- the height up to which the chain was read when it was created: transfers above can pay it; 0 when it was never read
ALTER TABLE invoices ADD COLUMN closed_block BIGINT CHECK (closed_block >= 0);                -- the height up to which the chain was read when it left the state open; null before
ALTER TABLE invoices ADD COLUMN remaining TEXT CHECK (remaining IS NULL OR length(remaining) BETWEEN 1 AND 78 AND trim(remaining, '0123456789') = '' AND substr(remaining, 1, 1) <> '0' AND status = 'open'); -- what is left to pay after a part; null unless open and partly paid
ALTER TABLE invoices ADD COLUMN remaining_transfer TEXT CHECK (remaining_transfer IS NULL OR length(remaining_transfer) BETWEEN 1 AND 78 AND trim(remaining_transfer, '0123456789') = '' AND remaining IS NOT NULL); -- remaining with a suffix; null when none was free
UPDATE invoices SET closed_block = coalesce((SELECT indexed_number FROM chains WHERE chains.chain_key = invoices.chain_key), 0) WHERE status <> 'open';

-- Every amount that a checkout told a payer to transfer: for the whole of an invoice, and for the remainders after parts were paid.
CREATE TABLE told_amounts (
    invoice_id       TEXT   NOT NULL REFERENCES invoices (id) DEFERRABLE INITIALLY DEFERRED, -- the row may come first: whether it can is decided here
    base             TEXT   NOT NULL CHECK (length(base) BETWEEN 1 AND 78 AND trim(base, '0123456789') = '' AND substr(base, 1, 1) <> '0'), -- what was due: the amount of the invoice, or a remainder
    amount           TEXT   CHECK (length(amount) BETWEEN 1 AND 78 AND trim(amount, '0123456789') = '' AND substr(amount, 1, 1) <> '0'),    -- base with a suffix, as the payer was told; null when none was free
    merchant_address TEXT   NOT NULL,                          -- of the invoice
    chain_key        TEXT   NOT NULL,                          -- of the invoice
    token            TEXT   NOT NULL,                          -- of the invoice
    from_block       BIGINT NOT NULL CHECK (from_block >= 0),  -- the height up to which the chain was read when it was told: transfers above can mean it
    expires_at       BIGINT NOT NULL,                          -- of the invoice
    remainder        BIGINT NOT NULL CHECK (remainder IN (0, 1)), -- whether base is a remainder
    live             BIGINT NOT NULL CHECK (live IN (0, 1)),   -- whether the invoice is open
    PRIMARY KEY (invoice_id, base),
    CHECK (amount IS NOT NULL OR remainder = 1)
);
-- An amount is told for one open invoice and no other.
CREATE UNIQUE INDEX told_amounts_live ON told_amounts (amount, merchant_address, chain_key, token) WHERE live = 1;
-- For which invoice an amount was told last.
CREATE INDEX told_amounts_by_amount ON told_amounts (amount, merchant_address, chain_key, token, from_block, invoice_id);
-- Those that a reorg of the blocks above a height binds to that height, beside the amounts of the invoices themselves.
CREATE INDEX told_amounts_bound ON told_amounts (chain_key, from_block) WHERE live = 1 AND remainder = 1;
CREATE INDEX told_amounts_by_remainder ON told_amounts (base, merchant_address) WHERE remainder = 1;

INSERT INTO told_amounts (invoice_id, base, amount, merchant_address, chain_key, token, from_block, expires_at, remainder, live)
    SELECT id, amount, transfer_amount, merchant_address, chain_key, token, 0, expires_at, 0, CASE WHEN status = 'open' THEN 1 ELSE 0 END
    FROM invoices WHERE transfer_amount IS NOT NULL;

-- Payments whose invoice depends on older blocks that were not read yet. They are decided in the order of the chain.
CREATE TABLE undecided_payments (
    payment_id   TEXT   NOT NULL PRIMARY KEY REFERENCES payments (id),
    chain_key    TEXT   NOT NULL,                              -- of the payment
    to_address   TEXT   NOT NULL,                              -- of the payment
    block_number BIGINT NOT NULL,                              -- of the payment
    log_index    BIGINT NOT NULL                               -- of the payment
);
CREATE INDEX undecided_payments_by_receiver ON undecided_payments (to_address, chain_key);
CREATE INDEX undecided_payments_by_place ON undecided_payments (chain_key, block_number, log_index);
ALTER TABLE chains ADD COLUMN unread_last BIGINT CHECK (unread_last >= 0); -- payments above this block can depend on blocks up to it that were never read, or on payments that are not decided; null when nothing does

DROP INDEX invoices_open_transfer_amount;
DROP INDEX invoices_closed_by_transfer_amount;
DROP INDEX invoices_expiring;
CREATE INDEX invoices_expiring ON invoices (chain_key, expires_at, from_block) WHERE status = 'open';
-- Those that were closed above a block could still be paid in it.
CREATE INDEX invoices_closed_by_amount ON invoices (amount, merchant_address, closed_block) WHERE status <> 'open';
CREATE INDEX invoices_closed_by_tolerance ON invoices (merchant_address, chain_key, token, closed_block) WHERE status <> 'open' AND tolerance <> '0';
-- Those created before their chain was first read.
CREATE INDEX invoices_unbound ON invoices (merchant_address, chain_key, token) WHERE from_block = 0;
-- Those that a reorg of the blocks above a height binds to that height.
CREATE INDEX invoices_bound ON invoices (chain_key, from_block) WHERE status = 'open';
