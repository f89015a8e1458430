-- An open invoice is found by all that a transfer says of it, so no other index of open invoices fits a transfer better.

-- +goose Up

DROP INDEX invoices_by_amount;
CREATE INDEX invoices_open_by_amount ON invoices (amount, merchant_address, chain_key, token) WHERE status = 'open';
