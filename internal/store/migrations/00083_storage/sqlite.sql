-- The storage and the quotas of each merchant, and the checkpoints up to which the audit log was archived.

CREATE TABLE merchant_storage (
    merchant_id   TEXT   NOT NULL PRIMARY KEY CHECK (length(merchant_id) <= 64), -- empty: the quotas of merchants without own ones
    audit_bytes   BIGINT NOT NULL DEFAULT 0 CHECK (audit_bytes >= 0),            -- of entries of the audit log that the merchant's keys caused, and that are not archived
    audit_quota   BIGINT CHECK (audit_quota >= 0),                               -- how many that may be; null for the quota of all
    invoices      BIGINT NOT NULL DEFAULT 0 CHECK (invoices >= 0),               -- that were made for the merchant, up to counted_to
    counted_to    TEXT   NOT NULL DEFAULT '',                                    -- id of the newest invoice that was counted
    invoice_quota BIGINT CHECK (invoice_quota >= 0),                             -- how many that may be; null for the quota of all
    CHECK (merchant_id <> '' OR (audit_quota IS NOT NULL AND invoice_quota IS NOT NULL))
);
INSERT INTO merchant_storage (merchant_id, audit_quota, invoice_quota) VALUES ('', 1073741824, 10000000);

-- Entries up to a checkpoint are in a file elsewhere, and may be deleted.
CREATE TABLE audit_checkpoints (
    seq        BIGINT NOT NULL PRIMARY KEY CHECK (seq > 0),      -- of the last entry that was archived
    hash       TEXT   NOT NULL CHECK (length(hash) = 64),        -- of that entry
    at         BIGINT NOT NULL,                                  -- Unix seconds: when it was made
    archive    TEXT   NOT NULL CHECK (length(archive) = 64),     -- SHA-256 of the file with the entries since the checkpoint before, in hex
    public_key TEXT   NOT NULL CHECK (length(public_key) = 64),  -- Ed25519, in hex; made of the master key
    signature  TEXT   NOT NULL CHECK (length(signature) = 128)   -- of the fields above, in hex
);

DROP TRIGGER audit_entries_delete;
CREATE TRIGGER audit_entries_delete BEFORE DELETE ON audit_entries
WHEN OLD.seq > (SELECT coalesce(max(seq), 0) FROM audit_checkpoints)
BEGIN
    SELECT RAISE(ABORT, 'entries of the audit log are not removed before they are archived');
END;
