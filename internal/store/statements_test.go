package store_test

import (
	"testing"

	"github.com/quittance/quittance/internal/store"
)

func TestParametersOnSQLite(t *testing.T) {
	for query, want := range map[string]string{
		"SELECT 1":               "SELECT 1",
		"VALUES ($1,$2),($3,$4)": "VALUES (?,?),(?,?)",
		"VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10)": "VALUES (?,?,?,?,?,?,?,?,?,?)",
		"VALUES ($2,$1)":    "VALUES (?2,?1)",
		"VALUES ($1,$2,$1)": "VALUES (?1,?2,?1)",
		"VALUES ($1,$3)":    "VALUES (?1,?3)",
		"SELECT 1 LIMIT $1": "SELECT 1 LIMIT 0 + ?",
	} {
		if got := store.SQLiteText(query); got != want {
			t.Errorf("%s became %s; want %s", query, got, want)
		}
	}
}
