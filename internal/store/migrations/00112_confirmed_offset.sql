-- The time by which old data is deleted follows the machine's clock once that has held for a day of the schedule's clock.

-- +goose Up

ALTER TABLE schedule_clock ADD COLUMN offset_before_ms BIGINT; -- the smallest source_ms - now_ms of the day of now_ms before offset_since_ms; null until a program of this version has read the clock
ALTER TABLE schedule_clock ADD COLUMN offset_ms BIGINT;        -- the smallest one since offset_since_ms
ALTER TABLE schedule_clock ADD COLUMN offset_since_ms BIGINT;  -- when that day of now_ms began
