-- How much of a payment was paid back, kept with the payment.

-- +goose Up

ALTER TABLE payments ADD COLUMN paid_back TEXT NOT NULL DEFAULT '0' CHECK (trim(paid_back, '0123456789') = '' AND length(paid_back) >= 1); -- in refunds that are not orphaned
ALTER TABLE payments ADD COLUMN paid_back_stale BIGINT NOT NULL DEFAULT 0 CHECK (paid_back_stale IN (0, 1)); -- 1: paid_back is not known, and the refunds must be added up

UPDATE payments SET paid_back_stale = 1 WHERE EXISTS (SELECT 1 FROM refunds WHERE refunds.payment_id = payments.id);
