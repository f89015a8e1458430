package db_test

import (
	"database/sql"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

// TestColumnsOfStatesExist checks that the database has the columns that docs/states.md names.
func TestColumnsOfStatesExist(t *testing.T) {
	text, err := os.ReadFile(testdeps.Repo("docs/states.md"))
	expect.OK(t, err)
	url := dbtest.SQLite(t)
	dbtest.Open(t, url)
	conn, err := sql.Open("sqlite", strings.TrimPrefix(url, "sqlite:"))
	expect.OK(t, err)
	defer func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}()
	// Tables are plural, the objects of events are not.
	named := regexp.MustCompile("`([a-z_]+s)\\.([a-z_]+)`").FindAllStringSubmatch(string(text), -1)
	if len(named) < 8 {
		t.Errorf("docs/states.md names %d columns", len(named))
	}
	for _, name := range named {
		var there int
		expect.OK(t, conn.QueryRowContext(t.Context(), "SELECT count(*) FROM pragma_table_info($1) WHERE name = $2", name[1], name[2]).Scan(&there))
		if there != 1 {
			t.Errorf("docs/states.md names %s.%s, which does not exist", name[1], name[2])
		}
	}
}
