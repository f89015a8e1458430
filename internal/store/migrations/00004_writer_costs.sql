-- +goose Up

-- What the on-chain writer knows of the costs of a transaction, and of where it got to.
ALTER TABLE chain_txs ADD COLUMN reserved_gwei BIGINT NOT NULL DEFAULT 0 CHECK (reserved_gwei >= 0); -- the most that it can cost, in billionths of the native coin
ALTER TABLE chain_txs ADD COLUMN spent_gwei BIGINT CHECK (spent_gwei >= 0); -- what it did cost; null while that is not known
ALTER TABLE chain_txs ADD COLUMN spent_ms BIGINT CHECK ((spent_ms IS NULL) = (spent_gwei IS NULL)); -- when that was known
ALTER TABLE chain_tx_attempts ADD COLUMN accepted_ms BIGINT; -- when a node first took it into its pool; null when none is known to have
CREATE INDEX chain_txs_spent ON chain_txs (chain_key, spent_ms) WHERE spent_ms IS NOT NULL;
CREATE INDEX chain_txs_unspent ON chain_txs (chain_key, created_ms) WHERE spent_ms IS NULL;
