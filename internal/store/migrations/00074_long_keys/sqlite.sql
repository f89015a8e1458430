-- The index that one of migration 73 replaces.
DROP INDEX intents_by_commitment;
