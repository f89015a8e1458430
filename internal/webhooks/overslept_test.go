package webhooks

import (
	"errors"
	"net/http"
	"testing"
	"time"
)

// TestOverslept has exchanges that took longer than allowed: an answer is the endpoint's, however long it took.
func TestOverslept(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	const limit = 5 * time.Second
	for name, c := range map[string]struct {
		answer Answer
		took   time.Duration
		want   bool
	}{
		"no answer in time":          {Answer{Err: failed}, limit, false},
		"no answer, a little late":   {Answer{Err: failed}, limit + oversleep, false},
		"no answer, later":           {Answer{Err: failed}, limit + oversleep + 1, true},
		"410 after a jump":           {Answer{Err: failed, Code: http.StatusGone}, 24 * time.Hour, false},
		"500 after a jump":           {Answer{Err: failed, Code: http.StatusInternalServerError}, 24 * time.Hour, false},
		"an accepted one after that": {Answer{Code: http.StatusOK}, 24 * time.Hour, false},
	} {
		if got := overslept(c.answer, c.took, limit); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
