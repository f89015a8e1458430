-- Who held a merchant id: of each that the configuration has, had, or that was retired. sqlite.sql does the same.

CREATE TABLE merchant_holders (
    merchant_id    TEXT COLLATE "C" NOT NULL PRIMARY KEY CHECK (length(merchant_id) <= 64),
    addresses      TEXT COLLATE "C" NOT NULL, -- JSON array of the allowed addresses in the configuration when a service last started with it
    webhook_sha256 TEXT COLLATE "C" NOT NULL, -- of the host of its webhookUrl then; hex, empty without a URL
    url_sha256     TEXT COLLATE "C" NOT NULL, -- of the whole webhookUrl; hex, empty without one. With another URL the breaker of the former one ends
    since          BIGINT           NOT NULL, -- Unix seconds of the first start with it
    left_at        BIGINT,                    -- Unix seconds of the first start without it; null while the configuration has it
    retired_at     BIGINT                     -- Unix seconds; null unless it was retired
);
