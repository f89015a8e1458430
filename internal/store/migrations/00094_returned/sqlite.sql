-- While an invoice is open, an amount that was or is to be refunded of a payment does not count for it.

ALTER TABLE payments ADD COLUMN returned TEXT CHECK (trim(returned, '0123456789') = '' AND length(returned) >= 1); -- how much of it was refunded, or was to be, while its invoice was open; null for 0
ALTER TABLE invoices ADD COLUMN arrived_returned TEXT NOT NULL DEFAULT '0' CHECK (trim(arrived_returned, '0123456789') = '' AND length(arrived_returned) >= 1); -- how much of arrived_in_time was returned
ALTER TABLE invoices ADD COLUMN due_returned TEXT NOT NULL DEFAULT '0' CHECK (trim(due_returned, '0123456789') = '' AND length(due_returned) >= 1); -- how much of due was returned
ALTER TABLE refund_records ADD COLUMN invoice_paid BIGINT CHECK (invoice_paid = 1); -- 1 if the invoice became paid while the prepared refund could still be sent
