-- Erasures of customers' personal data. sqlite.sql does the same.

-- One for each request that concerns invoices. It is never deleted.
CREATE TABLE erasures (
    id          TEXT COLLATE "C" NOT NULL PRIMARY KEY CHECK (id LIKE 'ers\_%' ESCAPE '\'), -- ers_…; its order is that of the requests
    merchant_id TEXT COLLATE "C" NOT NULL CHECK (length(merchant_id) <= 64),
    customer    TEXT COLLATE "C" CHECK (length(customer) BETWEEN 1 AND 254),               -- id of the customer, or else the e-mail address; null once it is erased
    through     TEXT COLLATE "C" NOT NULL,                                                 -- id of the customer's newest invoice; empty if there was none
    invoices    BIGINT           NOT NULL DEFAULT 0 CHECK (invoices >= 0),                 -- that are erased
    created_at  BIGINT           NOT NULL,                                                 -- Unix seconds
    finished_at BIGINT,                                                          -- Unix seconds; null while invoices are left
    CHECK ((customer IS NULL) = (finished_at IS NOT NULL))
);
CREATE UNIQUE INDEX erasures_running ON erasures (merchant_id, customer) WHERE customer IS NOT NULL;
