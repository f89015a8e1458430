-- What a statement of a month cannot find by the times in the ids of invoices: those that live longer than a day, and payments that were confirmed more than a
-- day after their blocks.

CREATE INDEX invoices_long_lived ON invoices (merchant_id, expires_at, id) WHERE expires_at - created_at > 86400;
CREATE INDEX payments_confirmed_late ON payments (merchant_id, confirmed_at, block_time, invoice_id) WHERE invoice_id IS NOT NULL AND confirmed_at - block_time > 86400;
