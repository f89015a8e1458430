-- An authorization is not accepted if a stored payment was made by its nonce. Also, a refund that a reorg dropped counts only for a limited time.

CREATE INDEX payments_by_authorization ON payments (authorization_id, from_address) WHERE authorization_id IS NOT NULL;
CREATE INDEX refunds_orphaned ON refunds (orphaned_at) WHERE status = 'orphaned';
