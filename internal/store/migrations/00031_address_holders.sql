-- Which merchants may have invoices paid to an address, whatever the chain.

-- +goose Up

-- Addresses that merchants hold. The row of an address is what two transactions that would give it to different merchants contend for.
CREATE TABLE held_addresses (
    address     TEXT   NOT NULL PRIMARY KEY CHECK (length(address) = 42),
    sole_holder TEXT   REFERENCES merchants (id), -- the merchant whose own key used or listed the address first; null once the operator gave it to merchants
    created_at  BIGINT NOT NULL                   -- when it was first held
);

-- Merchants to which the operator gave an address: with an invoice, a list of allowed addresses or a default address.
CREATE TABLE address_grants (
    address     TEXT   NOT NULL REFERENCES held_addresses (address),
    merchant_id TEXT   NOT NULL REFERENCES merchants (id),
    created_at  BIGINT NOT NULL,                  -- when it was given
    PRIMARY KEY (address, merchant_id)
);

-- The API had no merchants' keys in the previous release, so that what invoices name was the operator's choice.
INSERT INTO held_addresses (address, created_at) SELECT address, min(created_at) FROM settlement_addresses GROUP BY address;
INSERT INTO address_grants (address, merchant_id, created_at)
    SELECT address, merchant_id, min(created_at) FROM settlement_addresses GROUP BY address, merchant_id;
