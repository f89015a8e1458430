-- A form of the dashboard that is sent twice makes one key, whichever replica answers.

-- +goose Up

ALTER TABLE sessions ADD COLUMN last_form TEXT CHECK (length(last_form) = 64); -- SHA-256 of the token of the last form that must be taken once, in hexadecimal; null if there was none
