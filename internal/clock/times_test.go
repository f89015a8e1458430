package clock_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/test/expect"
)

func TestEarlierAndLater(t *testing.T) {
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	for _, pair := range [][2]time.Time{{early, late}, {late, early}} {
		expect.Equal(t, clock.Earlier(pair[0], pair[1]), early, "the earlier of %v is", pair)
		expect.Equal(t, clock.Later(pair[0], pair[1]), late, "the later of %v is", pair)
	}
}

func TestZeroTimeIsNoText(t *testing.T) {
	zone := time.FixedZone("east", 3600)
	for at, want := range map[time.Time]string{
		{}:                     "",
		time.Time{}.In(zone):   "",
		time.Time{}.Local():    "",
		clock.Unix(0):          "",
		clock.Unix(1):          "1970-01-01T01:00:01+01:00",
		time.Unix(0, 0):        "1970-01-01T01:00:00+01:00",
		clock.Unix(-1):         "1970-01-01T00:59:59+01:00",
		clock.Unix(1764313200): "2025-11-28T08:00:00+01:00",
	} {
		expect.Equal(t, clock.Format(at, zone, time.RFC3339), want, "%v:", at)
	}
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		if !clock.Sleep(t.Context(), time.Minute, nil) || time.Since(begun) != time.Minute {
			t.Errorf("slept %v, want a minute", time.Since(begun))
		}
		wake := make(chan struct{}, 1)
		clock.Wake(wake)
		clock.Wake(wake) // does not block
		begun = time.Now()
		if !clock.Sleep(t.Context(), time.Minute, wake) || time.Since(begun) != 0 {
			t.Errorf("slept %v in spite of a wake-up", time.Since(begun))
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if clock.Sleep(ended, time.Minute, nil) || time.Since(begun) != 0 {
			t.Errorf("slept %v after the context ended", time.Since(begun))
		}
	})
}

func TestJitter(t *testing.T) {
	for random, want := range map[float64]time.Duration{0: 80, 0.5: 100, 1: 120} {
		expect.Equal(t, clock.Jitter(100, random), want, "Jitter(100, %v) =", random)
	}
}

func TestStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dog := clock.New(0)
		stuck, busy, over := dog.Begin("stuck"), dog.Begin("busy"), dog.Begin("over")
		over.End()
		time.Sleep(clock.Limit - time.Second) //nolint:forbidigo // of virtual time
		busy.Progress()
		expect.Len(t, dog.Stalled(), 0, "a second early:")
		time.Sleep(time.Second) //nolint:forbidigo // of virtual time
		if diff := cmp.Diff([]clock.Stall{{Name: "stuck", For: clock.Limit}}, dog.Stalled()); diff != "" {
			t.Error(diff)
		}
		stuck.Replace()
		if all := dog.Stalled(); len(all) != 1 || !all[0].Replaced {
			t.Errorf("replaced: %v", all)
		}
		stuck.Progress()
		expect.Len(t, dog.Stalled(), 0, "after progress:")
	})
}

func TestLogsEachStallOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dog := clock.New(0)
		var log bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		go dog.Run(ctx, slog.New(slog.NewTextHandler(&log, nil)))
		task := dog.Begin("lease")
		for _, want := range []int{1, 2} {
			time.Sleep(5 * clock.Limit) //nolint:forbidigo // of virtual time
			synctest.Wait()
			if n := strings.Count(log.String(), "work makes no progress"); n != want || !strings.Contains(log.String(), "work=lease for=1m0s") {
				t.Errorf("logged %d times, want %d:\n%s", n, want, log.String())
			}
			task.Progress()
			time.Sleep(clock.Limit / 2) //nolint:forbidigo // of virtual time
		}
		task.End()
		cancel()
		synctest.Wait()
	})
}
