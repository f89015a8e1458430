-- Time zones of merchants, by which their days begin.

-- +goose Up
ALTER TABLE merchant_profiles ADD COLUMN timezone TEXT NOT NULL DEFAULT '' CHECK (length(timezone) <= 64); -- name of the IANA time zone database, such as Europe/Berlin; empty: UTC
