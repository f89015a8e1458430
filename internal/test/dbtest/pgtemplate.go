package dbtest

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"testing"

	"github.com/quittance/quittance/internal/db"
)

// MigratedPostgres is Postgres with a database that has the schema. It copies one: running the
// migrations takes ten times as long. A server that the environment names gets no template, because it
// would not be removed; there the database is empty.
func MigratedPostgres(tb testing.TB) string {
	tb.Helper()
	return newPostgres(tb, pgTemplate)
}

// pgTemplate returns the name of a database of the shared cluster that has only the schema. Each
// process makes its own, because others may have another schema. It ends with the cluster.
var pgTemplate = sync.OnceValues(func() (name string, err error) {
	host, err := sharedHost()
	if err != nil {
		return "", err
	}
	if host.cluster == nil {
		return emptyTemplate, nil
	}
	name = "template_" + strings.ToLower(rand.Text())
	if err := administer(host.url, "CREATE DATABASE "+name); err != nil {
		return "", err
	}
	dsn, err := withDatabase(host.url, name)
	if err != nil {
		return "", err
	}
	s, err := db.Open(context.Background(), dsn)
	if err != nil {
		return "", err
	}
	return name, s.Close()
})
