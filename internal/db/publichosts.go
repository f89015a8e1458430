package db

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// MaxFormerHosts is how many former public hosts are stored, the last used ones.
const MaxFormerHosts = 64

// UsePublicHost records that the service has a public host, and returns its former ones.
func (s *DB) UsePublicHost(ctx context.Context, host string, now time.Time) (former []string, err error) {
	err = s.Update(ctx, func(tx *Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO public_hosts (host, used_at) VALUES ($1, $2) ON CONFLICT (host) DO UPDATE SET used_at = excluded.used_at",
			host, invoice.UnixSeconds(now)); err != nil {
			return err
		}
		former, err = QueryAll(ctx, tx, ScanID, "SELECT host FROM public_hosts WHERE host <> $1 ORDER BY used_at DESC, host LIMIT $2", host, MaxFormerHosts)
		return err
	})
	return former, err
}
