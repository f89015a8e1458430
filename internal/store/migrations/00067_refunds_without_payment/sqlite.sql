-- A refund whose payment a reorg dropped is an item of the inbox. SQLite cannot change a condition: the column is replaced, and the table of decisions copied.

ALTER TABLE refund_records ADD COLUMN item_kind TEXT CHECK (item_kind IN ('approval', 'refund_without_payment')); -- kind of the item that it is, an approval until it expires; null if it needs no decision
UPDATE refund_records SET item_kind = item WHERE item IS NOT NULL;
DROP INDEX refund_records_by_item;
DROP INDEX refund_records_by_merchant_item;
ALTER TABLE refund_records DROP COLUMN item;
ALTER TABLE refund_records RENAME COLUMN item_kind TO item;
CREATE INDEX refund_records_by_item ON refund_records (item, list_id) WHERE item IS NOT NULL;
CREATE INDEX refund_records_by_merchant_item ON refund_records (merchant_id, item, list_id) WHERE item IS NOT NULL;

CREATE TABLE decisions_of_before AS SELECT * FROM inbox_decisions;
DROP TABLE inbox_decisions;
CREATE TABLE inbox_decisions (
    id          TEXT   NOT NULL PRIMARY KEY CHECK (id LIKE 'dec\_%' ESCAPE '\'),               -- dec_…; its order is that of the decisions
    merchant_id TEXT   NOT NULL CHECK (length(merchant_id) <= 64),                             -- whose inbox it is; empty for that of the operator alone
    kind        TEXT   NOT NULL CHECK (kind IN ('unattributed', 'claimed', 'underpaid', 'overpaid', 'late', 'duplicate', 'approval', 'refund_without_payment')), -- of the item
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
INSERT INTO inbox_decisions SELECT * FROM decisions_of_before;
DROP TABLE decisions_of_before;
CREATE UNIQUE INDEX inbox_decisions_in_force ON inbox_decisions (object_id, kind, version, merchant_id) WHERE undone_at IS NULL;
CREATE INDEX inbox_decisions_by_merchant ON inbox_decisions (merchant_id, id);
CREATE INDEX inbox_decisions_by_object ON inbox_decisions (object_id, id);

CREATE INDEX payments_orphaned_by_seen ON payments (seen_id) WHERE status = 'orphaned';
