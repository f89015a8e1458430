-- Whether a submission may be withdrawn is judged by a clock that does not jump as well.

-- +goose Up

ALTER TABLE refund_submissions ADD COLUMN started_scheduled BIGINT; -- started_at by the schedule's clock; null if a program of an older version began it
