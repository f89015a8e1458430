package main

import (
	"testing"
	"time"
)

// TestRecovery requires the time from a kill to the first window at nine tenths of the rate.
func TestRecovery(t *testing.T) {
	rates := make([]int, 200)
	for i := range rates {
		switch {
		case i < 100, i >= 130:
			rates[i] = 1000
		case i >= 120:
			rates[i] = 899
		}
	}
	if before, after := recovery(rates, 10*time.Second); before != 1000 || after != 3*time.Second {
		t.Errorf("%d/s again after %v, want 1000/s after 3s", before, after)
	}
	if _, after := recovery(rates[:125], 10*time.Second); after != killCycle {
		t.Errorf("the rate is there again after %v, want %v where it never is", after, killCycle)
	}
}
