-- +goose Up

-- The claims to a payment, in their order.
CREATE INDEX claims_by_payment ON claims (payment_id, id);
-- The same, those that are signed first.
CREATE INDEX claims_signed_first ON claims (payment_id, signed DESC, id);
