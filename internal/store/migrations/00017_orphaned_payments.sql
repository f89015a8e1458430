-- +goose Up

-- The payments in blocks that are not final and were left.
CREATE INDEX payments_orphaned ON payments (chain_key, block_number) WHERE status = 'orphaned';
