-- The order in which reports read refunds.

CREATE INDEX refunds_by_confirmation ON refunds (confirmed_at, id) WHERE confirmed_at IS NOT NULL;
