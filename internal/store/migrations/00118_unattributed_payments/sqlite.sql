-- After a recovery, payments to an address that have no invoice may have paid one that the lost past closed. An address may have many that have one.

CREATE INDEX payments_unattributed_to ON payments (to_address, chain_key, block_number) WHERE invoice_id IS NULL;
