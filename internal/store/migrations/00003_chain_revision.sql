-- +goose Up

-- What is verified before it becomes final is bound to this number: see settle.Confirm.
ALTER TABLE chains ADD COLUMN revision BIGINT NOT NULL DEFAULT 0 CHECK (revision >= 0); -- how often what was read of a block that is not final was taken back
