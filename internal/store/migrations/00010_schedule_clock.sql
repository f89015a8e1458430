-- The clock by which deliveries are scheduled: it goes on evenly whatever becomes of the clock that it follows.

-- +goose Up

CREATE TABLE schedule_clock (
    id        BIGINT NOT NULL PRIMARY KEY CHECK (id = 1),      -- there is one
    now_ms    BIGINT NOT NULL CHECK (now_ms >= 0),             -- its time when it was read last
    source_ms BIGINT NOT NULL                                  -- what the clock that it follows said then: PostgreSQL's own, or on SQLite the process's
);
