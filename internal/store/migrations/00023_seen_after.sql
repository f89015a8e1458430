-- A payment that was seen before an invoice was created does not pay it by its amount.

-- +goose Up

ALTER TABLE payments ADD COLUMN seen_after BIGINT NOT NULL DEFAULT 0 CHECK (seen_after >= 0); -- events.seq of the newest event when it was first seen; 0 if it was decided and final before this column
UPDATE payments SET seen_after = (SELECT coalesce(max(seq), 0) FROM events)
WHERE status <> 'confirmed' OR id IN (SELECT payment_id FROM undecided_payments);
