-- For whom each transaction was signed, so that its cost can be divided, and the orders in which statements and reports read costs.

-- A transaction without a row is of a release that did not record this.
CREATE TABLE chain_tx_merchants (
    tx_id        TEXT   NOT NULL REFERENCES chain_txs (id),
    merchant_id  TEXT   NOT NULL REFERENCES merchants (id),
    items        BIGINT NOT NULL CHECK (items > 0),         -- of the merchant that it was signed to carry: intents, authorizations or deposits
    items_before BIGINT NOT NULL CHECK (items_before >= 0), -- those of the merchants that come before this one when the cost is divided
    items_total  BIGINT NOT NULL,                           -- those of all merchants
    spent_ms     BIGINT,                                    -- chain_txs.spent_ms
    PRIMARY KEY (tx_id, merchant_id),
    CHECK (items_before + items <= items_total)
);
-- Of those from before this: sweep_tx_merchants, which nothing uses from now on, has those that sweep. The others are divided by the items
-- that still name them, except failed ones, whose items have gone to others.
INSERT INTO chain_tx_merchants (tx_id, merchant_id, items, items_before, items_total, spent_ms)
    SELECT tx_id, merchant_id, n, SUM(n) OVER (PARTITION BY tx_id ORDER BY merchant_id) - n, SUM(n) OVER (PARTITION BY tx_id), spent_ms
    FROM (SELECT tx_id, merchant_id, deposits AS n FROM sweep_tx_merchants UNION ALL
        SELECT intents.tx_id, invoices.merchant_id, count(*) FROM intents JOIN invoices ON invoices.id = intents.invoice_id
            WHERE intents.status <> 'due' AND intents.tx_id IS NOT NULL GROUP BY intents.tx_id, invoices.merchant_id UNION ALL
        SELECT tx_id, merchant_id, count(*) FROM authorizations WHERE tx_id IS NOT NULL GROUP BY tx_id, merchant_id) AS carried
    JOIN chain_txs ON chain_txs.id = carried.tx_id
    WHERE chain_txs.work = 'sweep' OR chain_txs.status <> 'failed';
CREATE INDEX chain_tx_merchants_by_cost ON chain_tx_merchants (merchant_id, spent_ms, tx_id) WHERE spent_ms IS NOT NULL;
CREATE INDEX chain_txs_by_cost ON chain_txs (spent_ms, id) WHERE spent_ms IS NOT NULL;
DROP INDEX chain_txs_of_sweeps;
