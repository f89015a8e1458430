-- What needs a decision is found by an index. The service sets the items of existing rows when it starts, each by the rules and under its chain's lock.

ALTER TABLE invoices ADD COLUMN item TEXT CHECK (item IN ('underpaid', 'overpaid', 'late', 'duplicate'));   -- kind of the inbox item that it is; null if it needs no decision
ALTER TABLE payments ADD COLUMN item TEXT CHECK (item IN ('unattributed', 'claimed'));                      -- kind of the item in the operator's inbox; null if it needs no decision
ALTER TABLE unattributed ADD COLUMN item TEXT CHECK (item IN ('unattributed', 'claimed'));                  -- kind of the item in the merchant's inbox; null if it needs no decision
ALTER TABLE refund_records ADD COLUMN item TEXT CHECK (item = 'approval');                                  -- kind of the item that it is until it expires; null if it needs no decision
CREATE INDEX invoices_by_item ON invoices (item, id) WHERE item IS NOT NULL;
CREATE INDEX invoices_by_merchant_item ON invoices (merchant_id, item, id) WHERE item IS NOT NULL;
CREATE INDEX payments_by_item ON payments (item, seen_id) WHERE item IS NOT NULL;
CREATE INDEX unattributed_by_merchant_item ON unattributed (merchant_id, item, seen_id) WHERE item IS NOT NULL;
CREATE INDEX refund_records_by_item ON refund_records (item, list_id) WHERE item IS NOT NULL;
CREATE INDEX refund_records_by_merchant_item ON refund_records (merchant_id, item, list_id) WHERE item IS NOT NULL;
