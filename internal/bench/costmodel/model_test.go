package costmodel_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/bench/costmodel"
)

const us = time.Microsecond

// constants are of the order of what is measured.
var constants = costmodel.Constants{
	Create: costmodel.Batch{
		Fixed: costmodel.CPU{Service: 200 * us, Database: 400 * us},
		Each:  costmodel.CPU{Client: 100 * us, Service: 150 * us, Database: 150 * us},
	},
	Hold:      costmodel.Hold{Fixed: 100 * us, Each: 50 * us},
	LaneShare: 0.5,
	Request:   100 * us, Transfer: 200 * us, TransferTime: 300 * us,
	Block: costmodel.CPU{Client: 500 * us, Service: 500 * us, Database: 500 * us},
	Seen: costmodel.Batch{
		Fixed: costmodel.CPU{Client: 400 * us, Service: 500 * us, Database: 500 * us},
		Each:  costmodel.CPU{Client: 300 * us, Service: 200 * us, Database: 200 * us},
	},
	Final:       costmodel.Batch{Each: costmodel.CPU{Service: 100 * us, Database: 200 * us}},
	Deliver:     costmodel.CPU{Client: 40 * us, Service: 100 * us, Database: 70 * us},
	DeliverPaid: costmodel.CPU{Client: 40 * us, Service: 150 * us, Database: 100 * us},
	Events:      3,
}

func TestLine(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		n1, n2      float64
		y1, y2      time.Duration
		fixed, each time.Duration
	}{
		{1, 11, 100 * us, 200 * us, 90 * us, 10 * us},
		{1, 10, 100 * us, 90 * us, 100 * us, 0},      // less for more: no slope
		{1, 10, 10 * us, 1000 * us, 0, 100 * us},     // it would begin below 0
		{2, 20, 100 * us, 1000 * us, 0, 50 * us},     // through 0
		{1, 2, 100 * us, 150 * us, 50 * us, 50 * us}, // exact
		{1, 32, 50 * us, 50 * us, 50 * us, 0},        // flat
		{1, 64, 0, 0, 0, 0},                          // free
	} {
		if fixed, each := costmodel.Line(test.n1, test.y1, test.n2, test.y2); fixed != test.fixed || each != test.each {
			t.Errorf("through (%v, %v) and (%v, %v): %v + %v n, want %v + %v n", test.n1, test.y1, test.n2, test.y2, fixed, each, test.fixed, test.each)
		}
	}
}

// TestOneClient: nothing is shared, so a create takes the sum of its parts.
func TestOneClient(t *testing.T) {
	t.Parallel()
	m := costmodel.Machine{CPUs: 2, Sync: time.Millisecond, Replicas: 1}
	got := costmodel.Creates(constants, m, 1, 20*time.Second)
	cost := constants.Create.Of(1)
	want := 1 / (cost.Client + cost.Served() + m.Sync).Seconds()
	if math.Abs(got.Rate/want-1) > 0.02 || got.Batch != 1 {
		t.Errorf("%.0f creates/s in transactions of %.1f, want %.0f in transactions of 1", got.Rate, got.Batch, want)
	}
}

// TestManyClients compares the simulation with the bounds where one resource is scarce.
func TestManyClients(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]costmodel.Machine{
		"CPUs":                   {CPUs: 1, Sync: 100 * us, Replicas: 1},
		"lock of events":         {CPUs: 64, Sync: 20 * time.Millisecond, Replicas: 4},
		"transactions at a time": {CPUs: 64, Sync: 100 * us, Replicas: 1},
	} {
		got := costmodel.Creates(constants, m, 1024, 10*time.Second)
		least := costmodel.Limit{Rate: math.Inf(1)}
		for _, limit := range constants.CreateLimits(m, got.Batch) {
			if limit.Rate < least.Rate {
				least = limit
			}
		}
		if least.Resource != name {
			t.Errorf("%+v: limited by %s, want %s", m, least.Resource, name)
		}
		if ratio := got.Rate / least.Rate; ratio > 1.02 || ratio < 0.8 {
			t.Errorf("%s: %.0f creates/s in transactions of %.0f, %.2f of the bound", name, got.Rate, got.Batch, ratio)
		}
	}
}

// TestBounds: no simulation is faster than what its resources allow.
func TestBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := costmodel.Machine{
			CPUs: rapid.Float64Range(0.5, 16).Draw(t, "CPUs"), Replicas: rapid.IntRange(1, 3).Draw(t, "replicas"),
			Sync: time.Duration(rapid.IntRange(0, 5000).Draw(t, "sync")) * us,
		}
		got := costmodel.Creates(constants, m, rapid.IntRange(1, 64).Draw(t, "clients"), 250*time.Millisecond)
		for _, limit := range constants.CreateLimits(m, got.Batch) {
			if got.Rate > 1.1*limit.Rate {
				t.Errorf("%.0f creates/s, but %s allows %.0f", got.Rate, limit.Resource, limit.Rate)
			}
		}
	})
}

// TestRepeatable: the same constants have the same outcome.
func TestRepeatable(t *testing.T) {
	t.Parallel()
	m := costmodel.Machine{CPUs: 2, Sync: 300 * us, Replicas: 1}
	first, second := costmodel.Lives(constants, m, 8, 250*time.Millisecond, time.Second), costmodel.Lives(constants, m, 8, 250*time.Millisecond, time.Second)
	if first != second {
		t.Errorf("%+v, and then %+v", first, second)
	}
}

// TestTransfers: where the chain's node is slow, it bounds whole lives.
func TestTransfers(t *testing.T) {
	t.Parallel()
	slow := constants
	slow.TransferTime = 20 * time.Millisecond
	got := costmodel.Lives(slow, costmodel.Machine{CPUs: 4, Sync: 100 * us, Replicas: 1}, 16, 250*time.Millisecond, 10*time.Second)
	if want := 1 / slow.TransferTime.Seconds(); got.Rate < 0.8*want || got.Rate > want {
		t.Errorf("%.0f lives/s, want about %.0f", got.Rate, want)
	}
}

// TestLives: where CPU is scarce, whole lives take the CPU time that they cost.
func TestLives(t *testing.T) {
	t.Parallel()
	m := costmodel.Machine{CPUs: 1, Sync: 100 * us, Replicas: 1}
	got := costmodel.Lives(constants, m, 16, 250*time.Millisecond, 10*time.Second)
	cost := constants.Life(got.Batch, got.Rate/4)
	want := m.CPUs / (cost.Client - constants.Create.Of(got.Batch).Times(1/got.Batch).Client + constants.Request + constants.Transfer + cost.Served()).Seconds()
	if ratio := got.Rate / want; ratio < 0.8 || ratio > 1.05 {
		t.Errorf("%.0f lives/s, want about %.0f", got.Rate, want)
	}
}
