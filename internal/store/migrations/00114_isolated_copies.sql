-- A copy that was served with --isolated cannot become the live database: nobody was sent its events.

-- +goose Up

ALTER TABLE recovery ADD COLUMN isolated_at BIGINT; -- Unix seconds of when serve --isolated first ran on the copy; null if it never did
