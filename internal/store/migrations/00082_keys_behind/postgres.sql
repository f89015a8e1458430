-- What sqlite.sql does, with texts that are compared by their bytes.

ALTER TABLE sessions ADD COLUMN behind TEXT COLLATE "C" NOT NULL DEFAULT '' CHECK (length(behind) <= 520);      -- ids of the keys that made the link by which it began, separated by spaces; empty if none did
ALTER TABLE sign_in_links ADD COLUMN behind TEXT COLLATE "C" NOT NULL DEFAULT '' CHECK (length(behind) <= 520); -- ids of the other keys that let in who made the link, separated by spaces
