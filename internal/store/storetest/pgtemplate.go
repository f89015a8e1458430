package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/quittance/quittance/internal/store"
)

// created has the names of the databases of Postgres that were not opened yet, by URL.
var created sync.Map

// copyTemplate replaces a database of Postgres that is empty by a copy of one with the
// schema. It does nothing for other databases, and on a server that the environment names,
// where nobody would remove the template. Running the migrations takes ten times as long.
func copyTemplate(ctx context.Context, url string) error {
	name, ok := created.LoadAndDelete(url)
	if !ok {
		return nil
	}
	host, err := sharedHost()
	if err != nil || host.cluster == nil {
		return err
	}
	if empty, err := isEmpty(ctx, url); err != nil || !empty {
		return err
	}
	template, err := pgTemplate()
	if err != nil {
		return err
	}
	if err := administer(host.url, fmt.Sprint("DROP DATABASE ", name)); err != nil {
		return err
	}
	return administer(host.url, fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s", name, template))
}

// isEmpty reports whether a database has neither tables nor settings.
func isEmpty(ctx context.Context, url string) (empty bool, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	err = conn.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM pg_class WHERE relnamespace = 'public'::regnamespace)
		AND NOT EXISTS (SELECT FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase WHERE datname = current_database())`).Scan(&empty)
	return empty, err
}

// pgTemplate returns the name of a database of the shared cluster that has the schema and
// nothing else. Each process makes its own, because others may have another schema. It ends
// with the cluster.
var pgTemplate = sync.OnceValues(func() (name string, err error) {
	host, err := sharedHost()
	if err != nil {
		return "", err
	}
	name = "template_" + strings.ToLower(rand.Text())
	if err := administer(host.url, "CREATE DATABASE "+name); err != nil {
		return "", err
	}
	dsn, err := withDatabase(host.url, name)
	if err != nil {
		return "", err
	}
	s, err := store.Open(context.Background(), dsn)
	if err != nil {
		return "", err
	}
	return name, s.Close()
})
