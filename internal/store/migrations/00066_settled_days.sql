-- Sums of settled_rollups by day, so that all that was settled before a month is not added up by quarters of an hour. They begin anew with settled_rollups.

-- +goose Up

CREATE TABLE settled_days (
    merchant_id TEXT   NOT NULL CHECK (length(merchant_id) <= 64), -- empty for all merchants together
    day         BIGINT NOT NULL CHECK (day % 86400 = 0),           -- Unix seconds: when the day begins in UTC. Those before the day of rollup_progress.through are complete
    chain_key   TEXT   NOT NULL,
    currency    TEXT   NOT NULL,
    payments    BIGINT NOT NULL CHECK (payments >= 0),             -- how many
    refunds     BIGINT NOT NULL CHECK (refunds >= 0),              -- how many
    gross       TEXT   NOT NULL CHECK (trim(gross, '0123456789') = '' AND length(gross) >= 1),       -- sum of the payments, in minor units
    refunded    TEXT   NOT NULL CHECK (trim(refunded, '0123456789') = '' AND length(refunded) >= 1), -- sum of the refunds, in minor units
    PRIMARY KEY (merchant_id, day, chain_key, currency)
);
CREATE INDEX settled_days_by_day ON settled_days (day);
UPDATE rollup_progress SET through = 0 WHERE id = 1;
