-- Idempotency keys of drafts that were deleted. They are used up like others, but their invoices do not exist any more.
CREATE TABLE IF NOT EXISTS deleted_draft_keys (
    scope        TEXT COLLATE "C"   NOT NULL,                                              -- who created the draft, as in idempotency_keys
    idem_key     TEXT COLLATE "C"   NOT NULL CHECK (length(idem_key) BETWEEN 1 AND 255),
    request_hash TEXT COLLATE "C"   NOT NULL,                                              -- hash of the request, to refuse a different one with the same key
    invoice_id   TEXT COLLATE "C"   NOT NULL CHECK (length(invoice_id) BETWEEN 1 AND 64),  -- the draft
    created_at   BIGINT NOT NULL,                                              -- Unix seconds: when the key was used
    PRIMARY KEY (scope, idem_key)
);
CREATE INDEX IF NOT EXISTS deleted_draft_keys_by_age ON deleted_draft_keys (created_at);
