-- An authorization is not accepted if a stored payment was made by its nonce.

CREATE INDEX payments_by_authorization ON payments (authorization_id, from_address) WHERE authorization_id IS NOT NULL;
