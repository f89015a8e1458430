-- When programs of a version of the schema completed what those of older versions had written.

-- +goose Up

CREATE TABLE adoptions (
    schema_version BIGINT NOT NULL PRIMARY KEY,
    first_at       BIGINT NOT NULL,
    last_at        BIGINT NOT NULL
);
