package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/quittance/quittance/internal/dev"
	"github.com/quittance/quittance/webhook"
)

// scenarioEvents are the events of each scenario, in their order.
var scenarioEvents = map[string]string{
	"underpaid":          "invoice.created payment.received invoice.expired",
	"overpaid":           "invoice.created payment.received invoice.paid",
	"late":               "invoice.created invoice.expired payment.received",
	"duplicate":          "invoice.created payment.received invoice.paid payment.received",
	"reorg":              "invoice.created payment.received payment.received invoice.paid",
	"refund":             "invoice.created payment.received invoice.paid payment.refunded",
	"expired":            "invoice.created invoice.expired",
	"slow-confirm":       "invoice.created payment.received invoice.paid",
	"provider-outage":    "invoice.created payment.received invoice.paid",
	"out-of-order":       "invoice.created payment.received invoice.paid payment.received invoice.created",
	"duplicate-delivery": "invoice.created payment.received invoice.paid invoice.paid",
}

// TestScenarios plays every scenario. They wait for blocks most of the time, so three worlds share them.
func TestScenarios(t *testing.T) {
	t.Parallel()
	for group := range scenarioGroups {
		var scenarios []dev.Scenario
		for i, s := range dev.Scenarios {
			if i%scenarioGroups == group {
				scenarios = append(scenarios, s)
			}
		}
		t.Run(scenarios[0].Name, func(t *testing.T) {
			t.Parallel()
			playScenarios(t, scenarios)
		})
	}
}

// scenarioGroups is the number of worlds.
const scenarioGroups = 3

// playScenarios plays scenarios in one world. Its receiver verifies and gets each event that a
// scenario shows. The receiver's clock is not advanced.
func playScenarios(t *testing.T, scenarios []dev.Scenario) {
	t.Helper()
	type post struct{ delivery, typ string }
	posts := make(chan post, 100)
	var secret atomic.Pointer[string]
	verifier := webhook.Verifier{Lookup: func(*http.Request) ([]string, error) { return []string{*secret.Load()}, nil }}
	receiver := httptest.NewServer(verifier.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		posts <- post{r.Header.Get(webhook.HeaderDelivery), r.Header.Get(webhook.HeaderEvent)}
	})))
	t.Cleanup(receiver.Close)
	guide := startDev(t, "--data", t.TempDir(), "--block-time", "50ms", "--webhook-url", receiver.URL)
	url := baseURL(t, guide)
	secret.Store(&regexp.MustCompile(`secret +(whsec_\S+)`).FindStringSubmatch(guide)[1])

	for _, s := range scenarios {
		var out, errs bytes.Buffer
		if code := run(t.Context(), environment{stdout: &out, stderr: &errs}, []string{"trigger", "--scenario", s.Name, "--url", url, "--json"}); code != 0 {
			t.Fatalf("%s: exit code %d\n%s%s", s.Name, code, &out, &errs)
		}
		var played dev.Played
		if err := json.Unmarshal(out.Bytes(), &played); err != nil {
			t.Fatalf("%s: %v in %s", s.Name, err, &out)
		}
		var shown, posted []string
		ids := make(map[post]int)
		for _, e := range played.Events {
			shown = append(shown, string(e.Envelope().Type))
			p := <-posts
			ids[p]++
			posted = append(posted, p.typ)
		}
		if got := strings.Join(shown, " "); got != scenarioEvents[s.Name] {
			t.Errorf("%s: it shows %s\nwant %s\n%s", s.Name, got, scenarioEvents[s.Name], &errs)
		}
		redelivered := slices.IndexFunc(played.Events, func(e dev.Came) bool { return e.Redelivered })
		if redelivered >= 0 { // the order is not guaranteed before
			if !slices.Equal(posted[redelivered:], shown[redelivered:]) {
				t.Errorf("%s: the receiver got %q, want %q", s.Name, posted, shown)
			}
			for _, e := range played.Events[redelivered:] {
				if p := (post{e.Delivery.ID, string(e.Envelope().Type)}); ids[p] != 2 {
					t.Errorf("%s: %v came %d times, want 2", s.Name, p, ids[p])
				}
			}
		}
		slices.Sort(posted)
		slices.Sort(shown)
		if !slices.Equal(posted, shown) {
			t.Errorf("%s: the receiver got %q, want %q", s.Name, posted, shown)
		}
	}
	if len(posts) > 0 {
		t.Errorf("the receiver got %v once more", <-posts)
	}
}

// TestScenarioHelp lists and completes scenarios, refuses unknown ones, and explains what is missing
// if no endpoint receives events.
func TestScenarioHelp(t *testing.T) {
	t.Parallel()
	url := baseURL(t, startDev(t, "--data", t.TempDir(), "--block-time", "50ms"))
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"trigger --list", "--scenario slow-confirm", 0},
		{"trigger --scenario lost", "there is underpaid, overpaid, late", 2},
		{"trigger --scenario reorg invoice.paid", "unexpected argument", 2},
		{"__complete trigger --scenario ", "duplicate-delivery\tan event arrives twice", 0},
		{"trigger --scenario expired --url " + url, "The events, in the order in which they came:", 0},
		{"trigger --scenario duplicate-delivery --url " + url, "start quittance dev with --webhook-url", 1},
	} {
		var out bytes.Buffer
		if code := run(t.Context(), environment{stdout: &out, stderr: &out}, strings.Split(c.args, " ")); code != c.code || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: exit code %d, want %d and %q:\n%s", c.args, code, c.code, c.want, &out)
		}
	}
}
