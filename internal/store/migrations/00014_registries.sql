-- +goose Up

-- The registries that the service was ever configured with. Payers can pay through each of them for ever, so their events are read for ever.
CREATE TABLE registries (
    chain_key  TEXT   NOT NULL,
    address    TEXT   NOT NULL CHECK (length(address) = 42), -- of the contract
    created_at BIGINT NOT NULL,                              -- when the service first ran with it
    PRIMARY KEY (chain_key, address)
);

-- Each invoice with the registry that its commitment names. That of an invoice from before is found by recomputing its commitment.
ALTER TABLE invoices ADD COLUMN registry TEXT CHECK (length(registry) = 42); -- the zero address for none; null when it is not known
CREATE INDEX invoices_without_registry ON invoices (id) WHERE registry IS NULL;
ALTER TABLE intents ADD COLUMN registry TEXT CHECK (length(registry) = 42); -- that is to be told: its invoice's; null when it is not known
DROP INDEX intents_due;
CREATE INDEX intents_due ON intents (chain_key, registry, id) WHERE status = 'due';
