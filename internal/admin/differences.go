package admin

import (
	"context"
	"fmt"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/ledger"
)

// Differences returns how a configuration differs from the earlier ones that the service's database
// records. It only reads, and fails for a database with the schema of an earlier program.
func Differences(ctx context.Context, c Config) (changes []chain.ConfigChange, err error) {
	if err := db.CheckExists(c.Database); err != nil {
		return nil, err
	}
	err = withOpened(ctx, c.Database, db.OpenUnchanged, func(store *db.DB) error {
		found, known, err := store.SchemaVersions(ctx)
		if err != nil {
			return err
		}
		if found < known {
			return fmt.Errorf("the database's schema is version %d, and this program compares from version %d on; start the service once with the configuration unchanged", found, known)
		}
		changes, err = ledger.Differences(ctx, store, c.Chains)
		return err
	})
	return changes, err
}
