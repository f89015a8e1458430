-- A payment has one use at a time. When the service starts, it sets the uses of existing rows by the rules, under each chain's lock.

ALTER TABLE payments ADD COLUMN use TEXT CHECK (use IN ('undecided', 'counted', 'refunding', 'refunded', 'dismissed')); -- the use of the payment; null if a program of the previous release inserted it
CREATE INDEX payments_of_unknown_use ON payments (seen_id) WHERE use IS NULL;
