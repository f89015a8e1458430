-- What sqlite.sql does, while replicas of the previous release write. An index that a failed attempt left is made anew. Customers
-- are in the order of bytes, as on SQLite, so that a prefix is a range.

DROP INDEX CONCURRENTLY IF EXISTS invoice_details_by_customer;
CREATE INDEX CONCURRENTLY invoice_details_by_customer ON invoice_details (merchant_id, (coalesce(customer_id, customer_email) COLLATE "C"), invoice_id)
    WHERE coalesce(customer_id, customer_email) IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS invoice_details_by_customer_email;
CREATE INDEX CONCURRENTLY invoice_details_by_customer_email ON invoice_details (merchant_id, customer_email COLLATE "C", customer_id COLLATE "C")
    WHERE customer_email IS NOT NULL AND customer_id IS NOT NULL;
