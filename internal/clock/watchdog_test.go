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
)

func TestStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dog := clock.New(0)
		stuck, busy, over := dog.Begin("stuck"), dog.Begin("busy"), dog.Begin("over")
		over.End()
		time.Sleep(clock.Limit - time.Second) //nolint:forbidigo // of virtual time
		busy.Progress()
		if all := dog.Stalled(); len(all) != 0 {
			t.Errorf("a second early: %v", all)
		}
		time.Sleep(time.Second) //nolint:forbidigo // of virtual time
		if diff := cmp.Diff([]clock.Stall{{Name: "stuck", For: clock.Limit}}, dog.Stalled()); diff != "" {
			t.Error(diff)
		}
		stuck.Replace()
		if all := dog.Stalled(); len(all) != 1 || !all[0].Replaced {
			t.Errorf("replaced: %v", all)
		}
		stuck.Progress()
		if all := dog.Stalled(); len(all) != 0 {
			t.Errorf("after progress: %v", all)
		}
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
