-- Only intents that are not done are looked up by their commitment. SQLite finds invoices and transfer amounts by their texts.
CREATE INDEX intents_undone_by_commitment ON intents (commitment_id) WHERE status <> 'done';
