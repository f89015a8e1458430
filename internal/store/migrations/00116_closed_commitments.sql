-- Commitments that were closed in a past which the database lost.

-- +goose Up

ALTER TABLE lost_invoices ADD COLUMN closed_block BIGINT CHECK (closed_block >= 0); -- where the registry closed the commitment; null if it did not, or a reorg dropped that block
ALTER TABLE lost_invoices ADD COLUMN closed_at BIGINT;                              -- time of that block

-- closed is 1 for an open invoice of which it is still to be decided whether it becomes void. Meanwhile its closed_block in
-- invoices is set: transfers above that block do not pay it, and it does not expire.
CREATE INDEX lost_invoices_closed ON lost_invoices (chain_key, closed_block) WHERE closed = 1;
