-- What sqlite.sql does, with texts that are compared by their bytes.

CREATE TABLE chain_audits (
    chain_key   TEXT COLLATE "C" NOT NULL,                                      -- the chain
    part        TEXT COLLATE "C" NOT NULL CHECK (part IN ('new', 'older')),     -- the blocks as they become final, or the blocks of a back-fill
    next_block  BIGINT           NOT NULL CHECK (next_block >= 0),              -- first block that is not audited
    last_block  BIGINT           CHECK (last_block >= 0),                       -- last block of the part; null for the newest final one
    by_header   BIGINT           NOT NULL DEFAULT 0 CHECK (by_header >= 0),     -- blocks with a header that rules out logs of interest
    by_receipts BIGINT           NOT NULL DEFAULT 0 CHECK (by_receipts >= 0),   -- blocks that were compared with all of their receipts
    by_node     BIGINT           NOT NULL DEFAULT 0 CHECK (by_node >= 0),       -- blocks that were compared with another node
    unverified  BIGINT           NOT NULL DEFAULT 0 CHECK (unverified >= 0),    -- blocks that were passed over, because there was no other means or no time
    CHECK ((part = 'new') = (last_block IS NULL)),
    PRIMARY KEY (chain_key, part)
);
