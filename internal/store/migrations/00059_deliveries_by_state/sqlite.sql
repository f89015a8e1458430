-- Deliveries by their state, in the order of the lists of events. Failed ones have such indexes already.

CREATE INDEX deliveries_by_merchant ON deliveries (merchant_id, seq);
CREATE INDEX delivered_deliveries ON finished_deliveries (seq) WHERE status = 'delivered';
CREATE INDEX delivered_deliveries_by_merchant ON finished_deliveries (merchant_id, seq) WHERE status = 'delivered';
