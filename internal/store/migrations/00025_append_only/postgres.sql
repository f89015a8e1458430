CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only: % of % is refused', TG_OP, TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END
$$;

CREATE TRIGGER audit_entries_change BEFORE UPDATE OR DELETE ON audit_entries
FOR EACH ROW EXECUTE FUNCTION refuse_audit_change();

CREATE TRIGGER audit_entries_truncate BEFORE TRUNCATE ON audit_entries
FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();

CREATE TRIGGER audit_head_update BEFORE UPDATE ON audit_head
FOR EACH ROW WHEN (NEW.seq <> OLD.seq + 1) EXECUTE FUNCTION refuse_audit_change();

CREATE TRIGGER audit_head_delete BEFORE DELETE ON audit_head
FOR EACH ROW EXECUTE FUNCTION refuse_audit_change();

CREATE TRIGGER audit_head_truncate BEFORE TRUNCATE ON audit_head
FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();
