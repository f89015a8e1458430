-- For whom a transaction that sweeps was sent, so that its cost can be divided, and the orders in which reports and histories
-- read such transactions and sweeps.

-- A transaction without a row is of a release that did not record this.
CREATE TABLE sweep_tx_merchants (
    tx_id       TEXT   NOT NULL REFERENCES chain_txs (id),
    merchant_id TEXT   NOT NULL REFERENCES merchants (id),
    deposits    BIGINT NOT NULL CHECK (deposits > 0), -- of the merchant that the transaction was sent to sweep
    PRIMARY KEY (tx_id, merchant_id)
);
CREATE INDEX chain_txs_of_sweeps ON chain_txs (spent_ms, id) WHERE work = 'sweep';
CREATE INDEX sweeps_of_invoice ON sweeps (invoice_id, block_number, log_index);
DROP INDEX deposit_balances_unswept; -- of a list that nothing reads: queued_sweeps has what is to be swept
