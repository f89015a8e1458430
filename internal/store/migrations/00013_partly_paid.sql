-- +goose Up

-- To find the invoices whose remainder a payment could be meant for.
CREATE INDEX invoices_partly_paid ON invoices (merchant_address, chain_key, token, id DESC) WHERE remaining IS NOT NULL;
