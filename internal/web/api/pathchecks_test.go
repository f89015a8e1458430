package api

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"
)

// Not every text is valid in a database, so each route with an id in its path checks it. The merchants' manager checks
// ids of merchants.
func TestEveryIDIsChecked(t *testing.T) {
	for _, route := range New(Config{Now: time.Now, Logger: slog.New(slog.DiscardHandler)}).Routes() {
		_, path, _ := strings.Cut(route.Pattern, " ")
		checked := slices.ContainsFunc(pathChecks, func(c pathCheck) bool { return strings.HasPrefix(path, c.path) })
		if strings.Contains(path, "{id}") && !checked && !strings.HasPrefix(path, "/api/merchants/{id}") {
			t.Errorf("%s has no row in pathChecks", route.Pattern)
		}
	}
}
