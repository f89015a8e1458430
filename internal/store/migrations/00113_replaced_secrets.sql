-- Merchants see that their secret was replaced because its master key was lost.

-- +goose Up

ALTER TABLE endpoint_secrets ADD COLUMN replaced_at BIGINT; -- when the secret took the place of others whose master key was lost; null once the endpoint answered a ping, and for others
