-- Transactions that may move a token from or to an address of ours, and that are not recorded: a node left out their logs, or cannot return their receipts.

CREATE TABLE unread_transactions (
    chain_key    TEXT   NOT NULL,                                                              -- chain of the transaction
    tx_hash      TEXT   NOT NULL CHECK (length(tx_hash) = 66),                                 -- 0x and 64 hex digits
    block_number BIGINT NOT NULL CHECK (block_number >= 0),                                    -- block that holds it
    reason       TEXT   NOT NULL CHECK (reason IN ('lookup', 'receipt', 'node', 'unreadable')), -- how it became known: a payer's lookup, a receipt that was read for another payment, another node, or a log without a receipt from the nodes
    detail       TEXT   NOT NULL CHECK (length(detail) <= 1000),                               -- the error of the last attempt to read it; empty before
    attempts     BIGINT NOT NULL CHECK (attempts >= 0),                                        -- how many attempts to read it have failed
    found_at     BIGINT NOT NULL,                                                              -- Unix seconds: when it became known
    next_at      BIGINT NOT NULL,                                                              -- Unix seconds: when it is read next
    dismissed_at BIGINT,                                                                       -- Unix seconds: when a person decided that it is not needed; null if it is not dismissed
    PRIMARY KEY (chain_key, tx_hash)
);
CREATE INDEX unread_transactions_by_block ON unread_transactions (chain_key, block_number) WHERE dismissed_at IS NULL;
