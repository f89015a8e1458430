package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// newDatabase returns the URL of a new database, which is removed after the run.
func (r *measurement) newDatabase(ctx context.Context) (string, error) {
	r.made++
	name := fmt.Sprintf("bench_%d", r.made)
	if r.database == "sqlite" {
		return "sqlite:" + filepath.Join(r.dir, name+".db"), nil
	}
	r.created = append(r.created, name)
	return r.cluster.DSN(name), execute(ctx, r.cluster.DSN("postgres"), "CREATE DATABASE "+name)
}

// dropDatabases removes the databases of the run.
func (r *measurement) dropDatabases(ctx context.Context) (err error) {
	for _, name := range r.created {
		err = errors.Join(err, execute(ctx, r.cluster.DSN("postgres"), "DROP DATABASE "+name+" WITH (FORCE)"))
	}
	files, listed := filepath.Glob(filepath.Join(r.dir, "bench_*.db*"))
	for _, file := range files {
		err = errors.Join(err, os.Remove(file))
	}
	return errors.Join(err, listed)
}

// openSQL opens a database for statements of the bench.
func openSQL(url string) (*sql.DB, error) {
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		return sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	}
	return sql.Open("pgx", url)
}

// execute runs a statement.
func execute(ctx context.Context, url, statement string) (err error) {
	db, err := openSQL(url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(ctx, statement)
	return err
}

// query returns the only value in a query's result.
func query[T any](ctx context.Context, url, text string) (value T, err error) {
	db, err := openSQL(url)
	if err != nil {
		return value, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.QueryRowContext(ctx, text).Scan(&value)
	return value, err
}

// expect fails unless each query returns its expected count.
func expect(ctx context.Context, url string, counts map[string]int) error {
	for text, want := range counts {
		if n, err := query[int](ctx, url, text); err != nil || n != want {
			return errors.Join(err, fmt.Errorf("%s: %d; want %d", text, n, want))
		}
	}
	return nil
}
