-- Which addresses are known to be controlled by who holds them.

-- Settlement addresses from which a transaction named a refund that was prepared for them: who holds such an address controls it.
CREATE TABLE proved_addresses (
    chain_key TEXT NOT NULL,                              -- chain of the transaction
    address   TEXT NOT NULL CHECK (length(address) = 42), -- that sent it
    tx_hash   TEXT NOT NULL CHECK (length(tx_hash) = 66), -- of the first such transaction
    proved_at BIGINT NOT NULL,                              -- Unix seconds: when it was seen
    PRIMARY KEY (chain_key, address)
);
INSERT INTO proved_addresses (chain_key, address, tx_hash, proved_at)
    SELECT refunds.chain_key, refunds.from_address, min(refunds.tx_hash), min(refunds.observed_at)
    FROM refund_records JOIN refunds ON refunds.id = refund_records.refund_id AND refunds.commitment_id = refund_records.tag
    GROUP BY refunds.chain_key, refunds.from_address;
