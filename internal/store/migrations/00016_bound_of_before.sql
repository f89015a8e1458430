-- Invoices of before their chain's height was kept are bound to the highest block that is known to be older than they are.

-- +goose Up

-- A final payment of a block that was mined two minutes before an invoice was created is not for it. The two minutes are for a clock
-- that is wrong. Of rows with equal times, the window holds all.
UPDATE invoices SET from_block = bound.block FROM (
    SELECT id, max(block) OVER (PARTITION BY chain_key ORDER BY at) AS block
    FROM (
        SELECT chain_key, block_time + 120 AS at, block_number AS block, NULL AS id FROM payments WHERE status = 'confirmed'
        UNION ALL
        SELECT chain_key, created_at, 0, id FROM invoices WHERE from_block = 0
    ) AS known
) AS bound WHERE invoices.id = bound.id AND bound.block > 0;

UPDATE told_amounts SET from_block = invoices.from_block FROM invoices
WHERE invoices.id = told_amounts.invoice_id AND told_amounts.from_block = 0 AND invoices.from_block > 0;
