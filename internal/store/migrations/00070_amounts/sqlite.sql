-- The index that postgres.sql makes, so that both have the same statements.
CREATE INDEX invoices_of_price ON invoices (amount, id) WHERE length(id) > 0;
DROP INDEX invoices_by_price;
