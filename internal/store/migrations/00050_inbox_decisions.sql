-- What people decided about payments, invoices and refunds that needed a decision.

-- +goose Up

-- A decision takes an item out of the inbox while the item has the version. It is never deleted: one that was taken back stays.
CREATE TABLE inbox_decisions (
    id          TEXT   NOT NULL PRIMARY KEY CHECK (id LIKE 'dec\_%' ESCAPE '\'),               -- dec_…; its order is that of the decisions
    merchant_id TEXT   NOT NULL CHECK (length(merchant_id) <= 64),                             -- whose inbox it is; empty for that of the operator alone
    kind        TEXT   NOT NULL CHECK (kind IN ('unattributed', 'claimed', 'underpaid', 'overpaid', 'late', 'duplicate', 'approval')), -- of the item
    object_id   TEXT   NOT NULL CHECK (length(object_id) BETWEEN 1 AND 64),                    -- payment, invoice or refund that the item is about
    version     TEXT   NOT NULL CHECK (length(version) BETWEEN 1 AND 200),                     -- of the item, as the person saw it
    decision    TEXT   NOT NULL CHECK (decision IN ('dismissed', 'accepted')),
    reason      TEXT   NOT NULL CHECK (length(reason) BETWEEN 1 AND 200),                      -- why
    decided_by  TEXT   NOT NULL CHECK (length(decided_by) BETWEEN 1 AND 200),                  -- name of the person's key
    decided_at  BIGINT NOT NULL,                                                               -- Unix seconds
    undone_by   TEXT   CHECK (length(undone_by) BETWEEN 1 AND 200),                            -- who took it back; null if nobody did
    undone_at   BIGINT,                                                                        -- Unix seconds: when it was taken back
    CHECK ((undone_by IS NULL) = (undone_at IS NULL))
);
CREATE UNIQUE INDEX inbox_decisions_in_force ON inbox_decisions (object_id, kind, version, merchant_id) WHERE undone_at IS NULL;
CREATE INDEX inbox_decisions_by_merchant ON inbox_decisions (merchant_id, id);
CREATE INDEX inbox_decisions_by_object ON inbox_decisions (object_id, id);
