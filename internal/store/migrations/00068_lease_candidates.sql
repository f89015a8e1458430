-- The replicas that would take a lease. So each knows how many others there are to share work with.

-- +goose Up

CREATE TABLE lease_candidates (
    name     TEXT   NOT NULL,                                -- of the lease
    holder   TEXT   NOT NULL,                                -- who it would be, as in leases
    until_ms BIGINT NOT NULL,                                -- afterwards the replica counts as dead
    PRIMARY KEY (name, holder)
);
