package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
)

func TestSeedProgress(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	steps := []struct {
		after    time.Duration
		progress db.LoadProgress
	}{
		{0, db.LoadProgress{Step: db.LoadInvoices, Done: 0}},
		{time.Second, db.LoadProgress{Step: db.LoadInvoices, Done: 5}},
		{11 * time.Second, db.LoadProgress{Step: db.LoadInvoices, Done: 10}},
		{12 * time.Second, db.LoadProgress{Step: db.LoadInvoices, Done: 20}},
		{13 * time.Second, db.LoadProgress{Step: db.LoadIndexes, Done: 1, Of: 2}},
		{14 * time.Second, db.LoadProgress{Step: db.LoadAnalyze}},
	}
	for _, test := range []struct {
		name string
		bar  bool
		want string
	}{
		{"lines", false, "write invoices: 0 of 20, 0s\nwrite invoices: 10 of 20, 11s\nwrite invoices: 20 of 20, 12s\n" +
			"create indexes and constraints: 1 of 2, 13s\ncount rows for the planner, 14s\n"},
		{"a bar", true, "\r\x1b[K[                              ] write invoices: 0 of 20, 0s" +
			"\r\x1b[K[#######                       ] write invoices: 5 of 20, 1s" +
			"\r\x1b[K[###############               ] write invoices: 10 of 20, 11s" +
			"\r\x1b[K[##############################] write invoices: 20 of 20, 12s" +
			"\r\x1b[K[###############               ] create indexes and constraints: 1 of 2, 13s" +
			"\r\x1b[K[                              ] count rows for the planner, 14s\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			now := began
			p := &seedProgress{out: &out, bar: test.bar, invoices: 20, now: func() time.Time { return now }, began: began}
			for _, s := range steps {
				now = began.Add(s.after)
				p.report(s.progress)
			}
			p.end()
			if got := out.String(); got != test.want {
				t.Errorf("it shows\n%q, want\n%q", got, test.want)
			}
		})
	}
}
