package ledger

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// Remembered returns what earlier configurations used.
func Remembered(ctx context.Context, q db.Querier) (r chain.RememberedChains, err error) {
	r.Chains, err = db.QueryAll(ctx, q, scanKnownChain, `SELECT chain_key, id_key, chain_id, genesis, genesis_number, configured, retired_at,
		EXISTS (SELECT 1 FROM chains WHERE chains.chain_key = known_chains.chain_key) FROM known_chains ORDER BY chain_key`)
	if err != nil {
		return r, err
	}
	byKey := make(map[string]*chain.KnownChain, len(r.Chains))
	for i := range r.Chains {
		byKey[r.Chains[i].Key] = &r.Chains[i]
	}
	tokens, err := db.QueryAll(ctx, q, tokenTable.Scan, tokenTable.Select()+" ORDER BY chain_key, created_at, address")
	if err != nil {
		return r, err
	}
	for _, t := range tokens {
		byKey[t.chainKey].Tokens = append(byKey[t.chainKey].Tokens, t.KnownToken)
	}
	type contract struct {
		chainKey, kind string
		address        invoice.Address
	}
	contracts, err := db.QueryAll(ctx, q, db.Fields(func(c *contract) []any {
		return []any{&c.chainKey, &c.kind, db.Address(&c.address)}
	}), "SELECT chain_key, kind, address FROM known_contracts ORDER BY chain_key, kind, address")
	if err != nil {
		return r, err
	}
	for _, c := range contracts {
		of := &byKey[c.chainKey].Factories
		if c.kind == contractRelay {
			of = &byKey[c.chainKey].Relays
		}
		*of = append(*of, c.address)
	}
	earlier, err := readBefore(ctx, q)
	r.Chains = append(r.Chains, earlier...)
	return r, err
}

// readBefore returns the chains that have blocks or rows but no recorded configuration, as in a
// database that package seed filled, and the tokens that are still needed.
func readBefore(ctx context.Context, q db.Querier) ([]chain.KnownChain, error) {
	chains, err := db.QueryAll(ctx, q, func(row db.Scanner) (chain.KnownChain, error) {
		c := chain.KnownChain{Read: true, Configured: true}
		err := row.Scan(&c.Key)
		c.IDKey = c.Key
		return c, err
	}, "SELECT chain_key FROM chains WHERE NOT EXISTS (SELECT 1 FROM known_chains AS k WHERE k.chain_key = chains.chain_key) ORDER BY chain_key")
	for i, c := range chains {
		if err != nil {
			break
		}
		chains[i].Tokens, err = db.QueryAll(ctx, q, func(row db.Scanner) (chain.KnownToken, error) {
			t := chain.KnownToken{Configured: true}
			t.Decimals = chain.TokenDecimals
			err := row.Scan(db.Address(&t.Address), &t.Currency)
			return t, err
		}, `SELECT token, currency FROM invoices WHERE chain_key = $1 AND status = 'open'
			UNION SELECT token, currency FROM payments WHERE chain_key = $1 AND status IN ('pending', 'held')
			UNION SELECT p.token, p.currency FROM refund_records AS r JOIN payments AS p ON p.id = r.payment_id
				WHERE r.chain_key = $1 AND r.status IN ('awaiting_address', 'awaiting_approval', 'pending')
			UNION SELECT b.token, p.currency FROM deposit_balances AS b JOIN payments AS p ON p.chain_key = b.chain_key AND p.to_address = b.address AND p.token = b.token
				WHERE b.chain_key = $1 AND b.since IS NOT NULL ORDER BY 1, 2`, c.Key)
	}
	return chains, err
}

// The kinds of known contracts.
const (
	contractFactory = "factory"
	contractRelay   = "relay"
)

// block returns the number of a block, which may be unknown.
func block(n sql.NullInt64) *uint64 {
	if !n.Valid {
		return nil
	}
	return new(uint64(n.Int64))
}

// blockColumn is the column value of a block number, which may be unknown.
func blockColumn(n *uint64) any {
	if n == nil {
		return nil
	}
	return int64(*n)
}

// knownToken is a token that earlier configurations used.
type knownToken struct {
	chainKey string
	chain.KnownToken
}

var tokenTable = db.NewTable("known_tokens", func(t *knownToken) []db.Column {
	return []db.Column{
		db.Col("chain_key", db.Text(&t.chainKey)),
		db.Col("address", db.Address(&t.Address)),
		db.Col("currency", db.Text(&t.Currency)),
		db.Col("decimals", db.Int(&t.Decimals)),
		db.Col("configured", db.Bool(&t.Configured)),
		db.Col("first_block", db.OptionalInt(&t.FirstBlock)),
		db.Col("last_block", db.OptionalInt(&t.LastBlock)),
		db.Col("missed_through", db.OptionalInt(&t.MissedThrough)),
	}
})

func scanKnownChain(row db.Scanner) (c chain.KnownChain, err error) {
	var hash invoice.Hash
	var number, retired sql.NullInt64
	err = row.Scan(&c.Key, &c.IDKey, &c.ID, db.Hash(&hash), &number, &c.Configured, &retired, &c.Read)
	c.Retired, c.Genesis = retired.Valid, genesisOf(hash, number)
	return c, err
}

// genesisOf returns the oldest block of a chain, or nil if it is not known.
func genesisOf(hash invoice.Hash, number sql.NullInt64) *invoice.Header {
	if !number.Valid {
		return nil
	}
	return &invoice.Header{Number: uint64(number.Int64), Hash: hash}
}

// genesis returns the recorded oldest block of a chain, or nil.
func genesis(ctx context.Context, q db.Querier, chainKey string) (*invoice.Header, error) {
	at, err := db.QueryRow(ctx, q, func(row db.Scanner) (*invoice.Header, error) {
		var hash invoice.Hash
		var number sql.NullInt64
		err := row.Scan(db.Hash(&hash), &number)
		return genesisOf(hash, number), err
	}, "SELECT genesis, genesis_number FROM known_chains WHERE chain_key = $1", chainKey)
	return at, db.IgnoreNotFound(err)
}

// PutKnownChains stores the settings with which the chains were used. It keeps a stored genesis or retirement.
func PutKnownChains(ctx context.Context, tx *db.Tx, chains []chain.KnownChain, now time.Time) error {
	var rows, tokens, contracts [][]any
	at := invoice.UnixSeconds(now)
	for _, c := range chains {
		rows = append(rows, []any{c.Key, c.IDKey, int64(c.ID), db.Bit(c.Configured), at})
		for _, t := range c.Tokens {
			tokens = append(tokens, tokenTable.Values(knownToken{c.Key, t}, at))
		}
		for _, a := range c.Factories {
			contracts = append(contracts, []any{c.Key, contractFactory, a.String(), at})
		}
		for _, a := range c.Relays {
			contracts = append(contracts, []any{c.Key, contractRelay, a.String(), at})
		}
	}
	for _, ins := range []struct {
		db.Insertion
		rows [][]any
	}{
		{db.Insertion{Table: "known_chains", Columns: []string{"chain_key", "id_key", "chain_id BIGINT", "configured BIGINT", "created_at BIGINT"},
			Conflict: "ON CONFLICT (chain_key) DO UPDATE SET chain_id = excluded.chain_id, configured = excluded.configured"}, rows},
		{tokenTable.Insertion("ON CONFLICT (chain_key, address) DO UPDATE SET "+tokenTable.Without("chain_key", "address").Excluded(), "created_at BIGINT"), tokens},
		{db.Insertion{Table: "known_contracts", Columns: []string{"chain_key", "kind", "address", "created_at BIGINT"}, Conflict: "ON CONFLICT DO NOTHING"}, contracts},
	} {
		if err := tx.Insert(ctx, ins.Insertion, ins.rows); err != nil {
			return err
		}
	}
	return nil
}

// setGenesis records the oldest block of a chain that its nodes have, unless it is known.
func setGenesis(ctx context.Context, tx *db.Tx, chainKey string, at invoice.Header) error {
	return tx.Send(ctx, nil, "UPDATE known_chains SET genesis = $2, genesis_number = $3 WHERE chain_key = $1 AND genesis IS NULL",
		chainKey, at.Hash.String(), int64(at.Number))
}

// clearMissed records that all blocks of a token have been read again.
func clearMissed(ctx context.Context, tx *db.Tx, chainKey string, token invoice.Address) error {
	return tx.Send(ctx, nil, "UPDATE known_tokens SET missed_through = NULL WHERE chain_key = $1 AND address = $2", chainKey, token.String())
}

// retireChain records that another key may use the chain id of a chain.
func retireChain(ctx context.Context, tx *db.Tx, chainKey string, now time.Time) error {
	return tx.Send(ctx, nil, "UPDATE known_chains SET retired_at = $2 WHERE chain_key = $1", chainKey, invoice.UnixSeconds(now))
}

// lockBlocks locks the cursors of chains, and waits for transactions that insert invoices on them. It returns
// the cursors of those that were read.
func lockBlocks(ctx context.Context, tx *db.Tx, chainKeys []string) (map[string]Cursor, error) {
	cursors := make(map[string]Cursor)
	for _, key := range slices.Sorted(slices.Values(chainKeys)) {
		cur, err := LockCursor(ctx, tx, key)
		if db.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if err == nil {
			cursors[key] = cur
		}
		if err := lockFromBlocks(ctx, tx, key); err != nil {
			return nil, err
		}
	}
	return cursors, nil
}
