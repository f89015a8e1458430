-- Additional headers that webhook endpoints require with each event.

CREATE TABLE endpoint_headers (
    merchant_id TEXT NOT NULL PRIMARY KEY CHECK (length(merchant_id) <= 64), -- the owner of the endpoint
    sealed      TEXT NOT NULL CHECK (length(sealed) <= 32768),               -- base64 of the names and values as JSON, encrypted under the master key for the merchant and version 0
    key_id      TEXT NOT NULL                                                -- of that master key
);
