-- A recovery that is run again, before a service has run, goes on.

-- +goose Up

ALTER TABLE recovery ADD COLUMN ended_at BIGINT; -- Unix seconds of when the last recovery ended; null once a service has run since
