package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryStatementIsBounded has no statement go past exec, collect and one,
// which bound how long it takes: they alone use the runner of queries.
func TestEveryStatementIsBounded(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	must(t, err)
	for _, name := range files {
		if name == "store.go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		must(t, err)
		if strings.Contains(string(text), ".run.") {
			t.Errorf("%s runs a statement by itself; use exec, collect or one", name)
		}
	}
}
