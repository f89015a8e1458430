-- Transactions of the transaction manager that carry other work than intents.

-- +goose Up

ALTER TABLE chain_txs ADD COLUMN work TEXT CHECK (work IN ('sweep', 'authorization')); -- what it carries; null for intents, whose kind is in the column kind. With work, kind is 'open' and has no meaning
ALTER TABLE chain_txs ADD COLUMN destination TEXT CHECK (length(destination) = 42);    -- the contract that it calls; null for a transaction from before this column
