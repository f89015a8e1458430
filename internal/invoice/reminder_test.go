package invoice

import (
	"strings"
	"testing"
)

// TestCheckReminderHours checks lists at the edges of what is allowed.
func TestCheckReminderHours(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hours []int
		wrong string // part of the error; empty for a valid list
	}{
		{nil, ""},
		{[]int{-720, -1, 1, 2, 720}, ""},
		{[]int{-3, -2, -1, 1, 2, 3}, "at most 5; there are 6"},
		{[]int{0}, "there is 0"},
		{[]int{-721}, "there is -721"},
		{[]int{721}, "there is 721"},
		{[]int{-24, 2, -24}, "has -24 twice"},
	} {
		if err := CheckReminderHours(c.hours); c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%v: %v, want %q", c.hours, err, c.wrong)
		}
	}
}
