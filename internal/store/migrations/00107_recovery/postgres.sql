-- Whether the database may have been restored from a backup, and has lost a part of its past. sqlite.sql does the same.

CREATE TABLE recovery (
    id           BIGINT           NOT NULL PRIMARY KEY CHECK (id = 1),                                        -- there is one
    state        TEXT COLLATE "C" NOT NULL CHECK (state IN ('normal', 'backup', 'suspected', 'recovering')),  -- backup: a copy by quittance backup; suspected: a lost past was found
    reason       TEXT COLLATE "C" NOT NULL CHECK ((reason = '') = (state = 'normal')),                        -- what was found, for a person
    since        BIGINT           NOT NULL,                                                                   -- Unix seconds of the state's begin; of the copy if it is backup
    beat         BIGINT           NOT NULL DEFAULT 0,                                                         -- how often replicas have read the schedule's clock; a replica that finds less than it wrote has lost a past
    cluster      TEXT COLLATE "C",                                                                            -- PostgreSQL's system identifier when a replica started last; null if it is not known, and on SQLite
    database_oid BIGINT,                                                                                      -- of the database in the cluster
    wal_timeline BIGINT,                                                                                      -- of the cluster
    wal_position BIGINT                                                                                       -- of the cluster, in bytes
);
INSERT INTO recovery (id, state, reason, since) VALUES (1, 'normal', '', 0) ON CONFLICT (id) DO NOTHING;
