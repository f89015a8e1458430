-- Where a recovery ended to read a chain: later payments belong to no lost past.

-- +goose Up

ALTER TABLE recovery_chains ADD COLUMN through_block BIGINT CHECK (through_block >= 0); -- the newest block that it read; null while it is under way, or if a program of an older version ended it
