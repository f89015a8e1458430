package webhooks

import (
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"":                              0,
		"0":                             0,
		"7":                             7 * time.Second,
		"86400":                         24 * time.Hour,
		"86401":                         24 * time.Hour,
		"18446744073709551615":          24 * time.Hour,
		"18446744073709551616":          0,
		"-1":                            0,
		"1.5":                           0,
		"soon":                          0,
		"Sun, 01 Mar 2026 12:02:00 GMT": 2 * time.Minute,
		"Sun, 01 Mar 2026 11:59:00 GMT": 0,
		"Sun, 01 Mar 2099 12:00:00 GMT": 24 * time.Hour,
	} {
		if got := retryAfter(text, now); got != want {
			t.Errorf("Retry-After %q: got %s, want %s", text, got, want)
		}
	}
}
