-- When people last looked at the dashboard, so that it can show what is new.

-- +goose Up
ALTER TABLE sessions ADD COLUMN visited_at BIGINT;     -- Unix seconds: when the first page was last opened; null if it was not
ALTER TABLE sessions ADD COLUMN visited_before BIGINT; -- Unix seconds: when the visit before that one ended; null if there was none
