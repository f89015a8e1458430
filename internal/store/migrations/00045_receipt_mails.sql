-- Receipts that payers asked for by e-mail.

-- +goose Up

-- One for each that was asked for. The address is kept until the mail was sent or given up.
CREATE TABLE receipt_mails (
    invoice_id TEXT   NOT NULL REFERENCES invoices (id),
    number     BIGINT NOT NULL CHECK (number > 0),                       -- within the invoice, from 1; bounds how many there are
    language   TEXT   NOT NULL CHECK (length(language) BETWEEN 2 AND 20), -- of the text, such as en
    recipient  TEXT   CHECK (length(recipient) BETWEEN 3 AND 254),        -- e-mail address; null once it was sent or given up
    attempts   BIGINT NOT NULL DEFAULT 0 CHECK (attempts >= 0),           -- that began; the outcome of an attempt is recorded only if it is the last one
    due_at     BIGINT,                                                    -- Unix seconds: of the next attempt; while one runs, when its lease ends; null once it was sent or given up
    created_at BIGINT NOT NULL,                                           -- Unix seconds
    sent_at    BIGINT,                                                    -- Unix seconds: when the server took it; null if it was given up, or before
    PRIMARY KEY (invoice_id, number),
    CHECK ((recipient IS NULL) = (due_at IS NULL)),
    CHECK (sent_at IS NULL OR due_at IS NULL)
);
CREATE INDEX receipt_mails_due ON receipt_mails (due_at) WHERE due_at IS NOT NULL;
