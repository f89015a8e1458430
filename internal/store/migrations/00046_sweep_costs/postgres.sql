-- What sqlite.sql does, while replicas of the previous release write. An index that a failed attempt left is made anew.

-- A transaction without a row is of a release that did not record this.
CREATE TABLE IF NOT EXISTS sweep_tx_merchants (
    tx_id       TEXT   NOT NULL REFERENCES chain_txs (id),
    merchant_id TEXT   NOT NULL REFERENCES merchants (id),
    deposits    BIGINT NOT NULL CHECK (deposits > 0), -- of the merchant that the transaction was sent to sweep
    PRIMARY KEY (tx_id, merchant_id)
);
DROP INDEX CONCURRENTLY IF EXISTS chain_txs_of_sweeps;
CREATE INDEX CONCURRENTLY chain_txs_of_sweeps ON chain_txs (spent_ms, id) WHERE work = 'sweep';
DROP INDEX CONCURRENTLY IF EXISTS sweeps_of_invoice;
CREATE INDEX CONCURRENTLY sweeps_of_invoice ON sweeps (invoice_id, block_number, log_index);
-- Of a list that nothing reads: queued_sweeps has what is to be swept.
DROP INDEX CONCURRENTLY IF EXISTS deposit_balances_unswept;
