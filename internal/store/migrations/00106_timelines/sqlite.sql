-- A timeline begins when the database was restored from a backup: the numbers behind the backup are given again, to other events.

CREATE TABLE timelines (
    number     BIGINT NOT NULL PRIMARY KEY CHECK (number > 0),             -- 1 is the first
    id         TEXT   NOT NULL UNIQUE CHECK (length(id) BETWEEN 1 AND 40), -- random
    started_at BIGINT NOT NULL,                                            -- Unix seconds
    last_seq   BIGINT NOT NULL CHECK (last_seq >= 0),                      -- number of the last event that it shares with the timeline before it
    last_audit BIGINT NOT NULL CHECK (last_audit >= 0)                     -- number of the last entry of the audit log that it shares with the timeline before it
);

-- What retention removed from the log of events: a row for each merchant, and one for all.
CREATE TABLE event_retention (
    merchant_id    TEXT   NOT NULL PRIMARY KEY CHECK (length(merchant_id) <= 64),      -- empty: all merchants
    removed_seq    BIGINT NOT NULL CHECK (removed_seq >= 0),                           -- the highest number of an event that was removed; events with lower ones may be stored
    removed_before BIGINT NOT NULL                                                     -- Unix seconds: the events that were removed were created before
);
