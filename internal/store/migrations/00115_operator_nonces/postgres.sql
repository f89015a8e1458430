-- How many nonces an operator's account had used, to notice that the database was restored. sqlite.sql does the same.

CREATE TABLE operator_nonces (
    chain_key TEXT COLLATE "C" NOT NULL CHECK (chain_key <> ''),
    account   TEXT COLLATE "C" NOT NULL CHECK (length(account) = 42), -- that sends, or sent, the service's transactions
    known     BIGINT NOT NULL CHECK (known >= 0),                     -- nonces below it are accepted as used, whether or not chain_txs has them: those of before the first start, and of other programs
    shared    BIGINT NOT NULL CHECK (shared IN (0, 1)),               -- 1: others sent with the account's key, as far as a person has not found a restore, so that its nonces prove nothing
    PRIMARY KEY (chain_key, account)
);
