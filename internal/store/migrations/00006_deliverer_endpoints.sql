-- Which endpoints each process knows from its configuration.

-- +goose Up

ALTER TABLE deliverers ADD COLUMN endpoints TEXT NOT NULL DEFAULT ''; -- a hash of the merchants whose endpoints its configuration holds: two with the same know the same
