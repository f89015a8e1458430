package main

import (
	"os"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"
)

// asProgram makes the test binary run as the program, which then need not be built.
const asProgram = "QUITTANCE_SIM_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestSeeds runs a few worlds. A failing one is printed with the faults that it needs.
func TestSeeds(t *testing.T) {
	t.Parallel()
	runSim(t, "1..21")
}

// TestExtraSeeds runs more worlds.
func TestExtraSeeds(t *testing.T) {
	t.Parallel()
	runSim(t, "22..42")
}

// TestExtraReplicas runs worlds with replicas on PostgreSQL.
func TestExtraReplicas(t *testing.T) {
	t.Parallel()
	runSim(t, "1..4", "-postgres")
}

// runSim runs seeds in processes of the program.
func runSim(t *testing.T, seeds string, flags ...string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, append(flags, "-seeds", seeds)...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	t.Logf("%s", text)
}

// TestMachineClock expects that setting the clock moves its wall time, and no duration that was measured before.
func TestMachineClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c := machineClock{began: began}
		before := c.now()
		time.Sleep(time.Second) //nolint:forbidigo // the time of a bubble passes
		offset := c.set(stream(1, "clock"))
		after := c.now()
		if passed := after.Sub(before); passed != time.Second || offset == 0 {
			t.Errorf("%s passed by a clock that was set by %s, want a second", passed, offset)
		}
		if wall, want := after.Round(0), began.Add(time.Second+offset); !wall.Equal(want) {
			t.Errorf("the clock shows %s, want %s", wall, want)
		}
	})
}
