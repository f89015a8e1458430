-- The version of the interface that a key is pinned to. Keys that exist, and those that a process of the previous release creates, have the first one.

-- +goose Up

ALTER TABLE api_keys ADD COLUMN api_version TEXT NOT NULL DEFAULT '2026-11-22' CHECK (length(api_version) = 10); -- a date, as the header Quittance-Version has it
