package indexer

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestMeter reads a thousand blocks in forty seconds, slower and slower.
func TestMeter(t *testing.T) {
	var log strings.Builder
	c := newClock()
	m := &meter{now: c.Now, logger: slog.New(slog.NewTextHandler(&log, nil))}
	lines := func() int { return strings.Count(log.String(), "\n") }
	m.end()
	m.reached(5)
	if m.snapshot() != nil || lines() != 0 {
		t.Errorf("before anything is read: %+v, %q", m.snapshot(), log.String())
	}
	m.begin(1001, 2000)
	if p := *m.snapshot(); p.Percent() != 0 || p.Left != 0 || p.BlocksPerSecond != 0 || lines() != 1 {
		t.Errorf("at the beginning: %+v, %q", p, log.String())
	}
	check := func(next uint64, percent, speed float64, left time.Duration, logged int) {
		t.Helper()
		m.reached(next)
		p := *m.snapshot()
		if p.At != next || p.Percent() != percent || p.BlocksPerSecond != speed || p.Left != left || lines() != logged {
			t.Errorf("%d lines, %+v, %.1f percent; want %d lines, %.1f percent, %.1f blocks/s, %s left", lines(), p, p.Percent(), logged, percent, speed, left)
		}
	}
	check(1001, 0, 0, 0, 1)
	c.Add(5 * time.Second)
	check(1401, 40, 80, 8*time.Second, 1) // 600 blocks left, rounded
	c.Add(5 * time.Second)
	check(1501, 50, 50, 10*time.Second, 2)
	m.begin(1501, 3000) // the end has moved
	c.Add(30 * time.Second)
	check(2001, 50, 500./30, time.Minute, 3) // samples older than the window do not count
	m.end()
	if m.snapshot() != nil || lines() != 4 || !strings.Contains(log.String(), "took=40s") {
		t.Errorf("at the end: %+v, %q", m.snapshot(), log.String())
	}
	m.begin(5, 6)
	if p := *m.snapshot(); p.From != 5 || p.At != 5 {
		t.Errorf("what is read next: %+v", p)
	}
}
