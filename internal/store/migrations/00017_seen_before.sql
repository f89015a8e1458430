-- What was known when an invoice was created, or a payment was first seen, is kept when a reorg follows.

-- +goose Up

ALTER TABLE invoices ADD COLUMN created_block BIGINT CHECK (created_block > from_block); -- the height up to which the chain was read when it was created; null when that is from_block, which a reorg has not lowered
ALTER TABLE payments ADD COLUMN left_block BIGINT CHECK (left_block >= 0);               -- the lowest block that it was seen in and that a reorg left; null when there is none
