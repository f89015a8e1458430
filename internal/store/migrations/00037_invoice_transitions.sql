-- When drafts were finalized and invoices were made void, of which no event says so.

-- +goose Up

-- Only transitions that a request asked for have a row; invoices that become paid or expired do so by the chain.
CREATE TABLE invoice_transitions (
    invoice_id TEXT   NOT NULL REFERENCES invoices (id),
    status     TEXT   NOT NULL CHECK (status IN ('open', 'void')), -- that the invoice came into: open if it was a draft before
    at         BIGINT NOT NULL CHECK (at > 0),
    PRIMARY KEY (invoice_id, status)
);
