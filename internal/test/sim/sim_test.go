package main

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestSeeds runs a few worlds. A failing one is printed with the faults that it needs.
func TestSeeds(t *testing.T) {
	t.Parallel()
	runSim(t, "1..24")
}

// TestExtraSeeds runs more worlds.
func TestExtraSeeds(t *testing.T) {
	t.Parallel()
	runSim(t, "25..120")
}

// runSim builds the program and runs seeds.
func runSim(t *testing.T, seeds string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "sim")
	if text, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, text)
	}
	text, err := exec.CommandContext(t.Context(), program, "-seeds", seeds).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	t.Logf("%s", text)
}
