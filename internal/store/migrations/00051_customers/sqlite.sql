-- Invoices by customer: by what the merchant calls them, or else by their e-mail address; and those with both by the address.

CREATE INDEX invoice_details_by_customer ON invoice_details (merchant_id, coalesce(customer_id, customer_email), invoice_id)
    WHERE coalesce(customer_id, customer_email) IS NOT NULL;
CREATE INDEX invoice_details_by_customer_email ON invoice_details (merchant_id, customer_email, customer_id)
    WHERE customer_email IS NOT NULL AND customer_id IS NOT NULL;
