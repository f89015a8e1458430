-- Who sends the transactions of prepared refunds.

-- +goose Up

-- A submission says that somebody sends a refund's transaction. It is never deleted: one that was withdrawn stays.
CREATE TABLE refund_submissions (
    id           TEXT   NOT NULL PRIMARY KEY CHECK (id LIKE 'sub\_%' ESCAPE '\'), -- sub_…; its order is that of the submissions
    refund_id    TEXT   NOT NULL REFERENCES refund_records (id),
    key_id       TEXT   CHECK (length(key_id) BETWEEN 1 AND 64),                  -- of the person's key; null at a service without keys
    submitted_by TEXT   NOT NULL CHECK (length(submitted_by) BETWEEN 1 AND 200),  -- name of that key
    started_at   BIGINT NOT NULL,                                                 -- Unix seconds
    tx_hash      TEXT   CHECK (length(tx_hash) = 66),                             -- of the transaction; null while it is not known
    withdrawn_by TEXT   CHECK (length(withdrawn_by) BETWEEN 1 AND 200),           -- who withdrew it; null if nobody did
    withdrawn_at BIGINT,                                                          -- Unix seconds: when it was withdrawn
    CHECK ((withdrawn_by IS NULL) = (withdrawn_at IS NULL))
);
CREATE UNIQUE INDEX refund_submissions_in_force ON refund_submissions (refund_id) WHERE withdrawn_at IS NULL;
CREATE INDEX refund_submissions_by_refund ON refund_submissions (refund_id, id);
