package db_test

import (
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// TestConnectTimeout checks that the URL of one host decides how long a connection may take, and that several hosts
// leave time for each other.
func TestConnectTimeout(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]time.Duration{
		"postgres://a/db":                         5 * time.Second,
		"postgres://a/db?connect_timeout=2":       2 * time.Second,
		"postgres://a/db?connect_timeout=60":      time.Minute,
		"postgres://a:1,b:2/db":                   2500 * time.Millisecond,
		"postgres://a:1,b:2/db?connect_timeout=1": time.Second,
		"postgres://a:1,b:2/db?connect_timeout=9": 2500 * time.Millisecond,
	} {
		if got, err := db.ConnectTimeout(url); got != want || err != nil {
			t.Errorf("a connection to %s may take %s, %v; want %s", url, got, err, want)
		}
	}
}
