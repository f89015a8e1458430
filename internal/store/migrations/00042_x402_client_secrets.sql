-- Payments by x402 that only the client which made them can repeat.

-- +goose Up

-- SHA-256 in hex of the secret that the merchant's server gave to the client, null without one. A repetition must have the same.
ALTER TABLE x402_settlements ADD COLUMN client_secret TEXT CHECK (length(client_secret) = 64);
