CREATE TRIGGER audit_entries_update BEFORE UPDATE ON audit_entries
BEGIN
    SELECT RAISE(ABORT, 'entries of the audit log are not changed');
END;

CREATE TRIGGER audit_entries_delete BEFORE DELETE ON audit_entries
BEGIN
    SELECT RAISE(ABORT, 'entries of the audit log are not removed');
END;

-- INSERT OR REPLACE removes the rows that conflict, without their delete triggers.
CREATE TRIGGER audit_entries_insert BEFORE INSERT ON audit_entries
WHEN EXISTS (SELECT 1 FROM audit_entries WHERE seq = NEW.seq OR hash = NEW.hash OR rowid = NEW.rowid)
BEGIN
    SELECT RAISE(ABORT, 'entries of the audit log are not replaced');
END;

CREATE TRIGGER audit_head_update BEFORE UPDATE ON audit_head
WHEN NEW.seq <> OLD.seq + 1
BEGIN
    SELECT RAISE(ABORT, 'the head of the audit log moves to the next entry');
END;

CREATE TRIGGER audit_head_delete BEFORE DELETE ON audit_head
BEGIN
    SELECT RAISE(ABORT, 'the head of the audit log is not removed');
END;

CREATE TRIGGER audit_head_insert BEFORE INSERT ON audit_head
BEGIN
    SELECT RAISE(ABORT, 'the head of the audit log is not replaced');
END;
