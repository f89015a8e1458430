-- The hosts of the public URLs that the service ever had.

CREATE TABLE public_hosts (
    host    TEXT NOT NULL PRIMARY KEY CHECK (length(host) <= 253), -- in lower case, without a port
    used_at BIGINT NOT NULL -- Unix seconds of the last start with it. Links to it lead to the newest one
);
