-- Merchants that were created by command or through the API, and where their money may go.

-- +goose Up

-- What a merchant is called, and its rules. A merchant of the configuration has no row here.
CREATE TABLE merchant_profiles (
    merchant_id       TEXT    NOT NULL PRIMARY KEY REFERENCES merchants (id),
    name              TEXT    NOT NULL CHECK (length(name) BETWEEN 1 AND 200),      -- shown to payers
    color             TEXT    NOT NULL CHECK (length(color) IN (0, 7)),             -- #rrggbb in lower case; empty for none
    support_contact   TEXT    NOT NULL CHECK (length(support_contact) <= 200),      -- e-mail address or https URL; may be empty
    statement         TEXT    NOT NULL CHECK (length(statement) <= 500),            -- text for payers; may be empty
    tolerance         TEXT    NOT NULL CHECK (length(tolerance) <= 80),             -- of new invoices: minor units, or a percentage; may be empty
    default_addresses TEXT    NOT NULL CHECK (length(default_addresses) <= 65536),  -- JSON object: settlement address by chain key
    allowed_addresses TEXT    NOT NULL CHECK (length(allowed_addresses) <= 65536),  -- JSON array of {chainKey, address}; empty array for no restriction
    pending_addresses TEXT    CHECK (length(pending_addresses) <= 65536),           -- JSON array that replaces allowed_addresses at pending_at
    pending_at        BIGINT,                                                       -- when the pending array takes effect
    created_at        BIGINT  NOT NULL,
    changed_at        BIGINT  NOT NULL,
    CHECK ((pending_addresses IS NULL) = (pending_at IS NULL))
);

-- Logos of merchants, encoded by the service.
CREATE TABLE merchant_logos (
    merchant_id TEXT    NOT NULL PRIMARY KEY REFERENCES merchant_profiles (merchant_id),
    png         TEXT    NOT NULL CHECK (length(png) <= 400000),   -- base64
    sha256      TEXT    NOT NULL CHECK (length(sha256) = 64),     -- of the PNG, in hex
    width       INTEGER NOT NULL CHECK (width > 0),               -- in pixels
    height      INTEGER NOT NULL CHECK (height > 0)               -- in pixels
);
