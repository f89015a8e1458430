-- What is over costs nothing: remainders of closed invoices, and payments that came late. Round amounts are told no more.

-- +goose Up

ALTER TABLE told_amounts ADD COLUMN closed_block BIGINT CHECK (closed_block IS NULL OR closed_block >= 0 AND live = 0); -- of the invoice; null while it is open
UPDATE told_amounts SET closed_block = (SELECT invoices.closed_block FROM invoices WHERE invoices.id = told_amounts.invoice_id) WHERE live = 0;
DROP INDEX told_amounts_by_remainder;
-- Invoices of which an amount remains, and those that were closed above a block: they could still be paid in it.
CREATE INDEX told_amounts_by_remainder ON told_amounts (base, merchant_address, chain_key, token, closed_block) WHERE remainder = 1;

-- What paid an invoice in time.
CREATE INDEX payments_in_time ON payments (invoice_id, block_time) WHERE invoice_id IS NOT NULL;

-- Versions before 00012 told amounts that are prices of others: whole cents.
DELETE FROM told_amounts WHERE remainder = 0 AND amount LIKE '%0000';
UPDATE invoices SET transfer_amount = NULL WHERE status = 'open' AND transfer_amount LIKE '%0000';
