-- Who announced the commitments of a past that the database lost.

ALTER TABLE lost_invoices ADD COLUMN tx_hash TEXT CHECK (length(tx_hash) = 66); -- of the last transaction that opened or closed the commitment; null if none is known
