-- A clock that does not jump decides which rows count against a budget of 24 hours.

-- +goose Up

ALTER TABLE authorizations ADD COLUMN created_scheduled_ms BIGINT; -- created_ms by the schedule's clock; null if a program of an older version accepted it
ALTER TABLE chain_txs ADD COLUMN created_scheduled_ms BIGINT;      -- created_ms by the schedule's clock; null if a program of an older version made it
ALTER TABLE chain_txs ADD COLUMN spent_scheduled_ms BIGINT;        -- spent_ms by the schedule's clock; null without spent_ms, and if a program of an older version set it
