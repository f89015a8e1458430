-- Certificates and account keys that the service has from an ACME server, which all replicas share.

-- +goose Up

CREATE TABLE acme_cache (
    name       TEXT   NOT NULL PRIMARY KEY CHECK (name <> ''), -- as package autocert names it: a host name, or the account key
    sealed     TEXT   NOT NULL,                                -- base64 of the content, encrypted under the master key for the name
    key_id     TEXT   NOT NULL CHECK (key_id <> ''),           -- id of that master key
    updated_at BIGINT NOT NULL                                 -- Unix seconds
);
