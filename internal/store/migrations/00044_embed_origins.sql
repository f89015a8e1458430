-- Which pages may show a merchant's checkout in a frame.

-- +goose Up

ALTER TABLE merchant_profiles ADD COLUMN embed_origins TEXT NOT NULL DEFAULT '[]' CHECK (length(embed_origins) <= 16384); -- JSON array of origins; empty array if no page may
