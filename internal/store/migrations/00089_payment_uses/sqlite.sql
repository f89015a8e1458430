-- A payment has one use at a time. The service sets those of existing rows when it starts, each by the rules and under its chain's lock.

ALTER TABLE payments ADD COLUMN use TEXT CHECK (use IN ('undecided', 'counted', 'refunding', 'refunded', 'dismissed')); -- what the payment is used for; null if a program of the previous release inserted it
CREATE INDEX payments_of_unknown_use ON payments (seen_id) WHERE use IS NULL;
