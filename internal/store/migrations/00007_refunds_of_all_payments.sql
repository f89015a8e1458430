-- A refund pays back any payment of the account, also one without an invoice. Its invoice is the payment's.

-- +goose Up

DROP INDEX refunds_by_invoice;
ALTER TABLE refunds DROP COLUMN invoice_id;
ALTER TABLE refunds DROP COLUMN merchant_id;
