-- Texts are ordered by their bytes, whatever the locale of the database: comparing them costs less, and an index keeps its
-- order when the operating system changes that of its locales. A database with invoices keeps the order that it has, since
-- its indexes would be made anew; docs/postgresql.md says how to change it.

DO $$
DECLARE
    change  record;
    indexes record;
BEGIN
    IF EXISTS (SELECT FROM invoices) THEN
        RETURN;
    END IF;
    FOR change IN
        SELECT attrelid AS id, string_agg(format('ALTER COLUMN %I TYPE text COLLATE "C"', attname), ', ') AS columns
        FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
            AND attnum > 0 AND NOT attisdropped AND atttypid = 'text'::regtype AND attcollation = 'default'::regcollation
        GROUP BY attrelid
    LOOP
        -- Indexes are made in their order, by which the planner decides between equal costs.
        SELECT string_agg(format('DROP INDEX %s', indexrelid::regclass), ';') AS drop,
            string_agg(pg_get_indexdef(indexrelid), ';' ORDER BY indexrelid) AS make INTO indexes
        FROM pg_index WHERE indrelid = change.id
            AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid AND contype IN ('p', 'u', 'x'));
        EXECUTE coalesce(indexes.drop, '');
        EXECUTE format('ALTER TABLE %s %s', change.id::regclass, change.columns);
        EXECUTE coalesce(indexes.make, '');
    END LOOP;
END $$
