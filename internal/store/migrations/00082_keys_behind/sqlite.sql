-- A session that began by a link ends with the keys that made the link.

ALTER TABLE sessions ADD COLUMN behind TEXT NOT NULL DEFAULT '' CHECK (length(behind) <= 520);      -- ids of the keys that made the link by which it began, separated by spaces; empty without such a link
ALTER TABLE sign_in_links ADD COLUMN behind TEXT NOT NULL DEFAULT '' CHECK (length(behind) <= 520); -- ids of the other keys that gave the link's maker access, separated by spaces
