package webhook_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/webhook"
)

func TestParseEvent(t *testing.T) {
	body := `{"id":"evt_1","type":"invoice.paid","createdAt":1700000000,"new":[1],"data": {"amount":"18446744073709551616"}}`
	got, err := webhook.ParseEvent([]byte(body))
	expect.OK(t, err)
	want := webhook.Event{
		ID: "evt_1", Type: webhook.InvoicePaid, CreatedAt: 1_700_000_000,
		Data: json.RawMessage(`{"amount":"18446744073709551616"}`),
	}
	expect.NoDiff(t, cmp.Diff(want, got), "event")
}

// eventVectors are bodies of deliveries. The tests of the TypeScript client use them, too.
func eventVectors(t *testing.T) (vectors []struct {
	Name, Body string
	BodyBase64 []byte
	Valid      bool
}) {
	t.Helper()
	text, err := os.ReadFile("testdata/events.json")
	expect.OK(t, err)
	if err := json.Unmarshal(text, &vectors); err != nil || len(vectors) < 40 {
		t.Fatalf("%d vectors, %v", len(vectors), err)
	}
	return vectors
}

// TestEventVectors parses bodies with and without their signature.
func TestEventVectors(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	verifier := webhook.Verifier{Secrets: []string{"whsec_new", "whsec_old"}, Now: func() time.Time { return now }}
	for _, v := range eventVectors(t) {
		body := v.BodyBase64
		if body == nil {
			body = []byte(v.Body)
		}
		parsed, err := webhook.ParseEvent(body)
		constructed, err2 := verifier.ConstructEvent(body, webhook.Sign("whsec_old", now, body))
		if v.Valid {
			if err != nil || err2 != nil || parsed.ID != "evt_1" {
				t.Errorf("%s: %+v, %v, %v", v.Name, parsed, err, err2)
			}
		} else if !errors.Is(err, webhook.ErrInvalidEvent) || !errors.Is(err2, webhook.ErrInvalidEvent) {
			t.Errorf("%s: got %v and %v, want ErrInvalidEvent", v.Name, err, err2)
		}
		if diff := cmp.Diff(parsed, constructed); diff != "" || !v.Valid && !cmp.Equal(parsed, webhook.Event{}) {
			t.Errorf("%s: %+v, and constructed %s", v.Name, parsed, diff)
		}
	}
}

// TestConstructEvent verifies signatures by the system's clock.
func TestConstructEvent(t *testing.T) {
	body := []byte(`{"id":"evt_1","type":"invoice.paid","createdAt":1,"data":{}}`)
	header := webhook.Sign("whsec_1", time.Now(), body)
	if e, err := webhook.ConstructEvent(body, header, "whsec_2", "whsec_1"); err != nil || e.ID != "evt_1" {
		t.Errorf("%+v, %v", e, err)
	}
	_, digest, _ := strings.Cut(webhook.Sign("whsec_2", time.Now(), body), "v1=")
	if _, err := webhook.ConstructEvent(body, header+",v1="+digest, "whsec_1"); err != nil {
		t.Errorf("a header with two v1: %v", err)
	}
	for name, test := range map[string]struct {
		header  string
		secrets []string
		want    error
	}{
		"another secret": {header, []string{"whsec_2"}, webhook.ErrBadSignature},
		"no secret":      {header, nil, webhook.ErrBadSignature},
		"empty secret":   {header, []string{""}, webhook.ErrBadSignature},
		"no header":      {"", []string{"whsec_1"}, webhook.ErrMissingHeader},
		"old":            {webhook.Sign("whsec_1", time.Now().Add(-time.Hour), body), []string{"whsec_1"}, webhook.ErrStaleTimestamp},
	} {
		if e, err := webhook.ConstructEvent(body, test.header, test.secrets...); !errors.Is(err, test.want) || e.ID != "" {
			t.Errorf("%s: %+v, %v, want %v", name, e, err, test.want)
		}
	}
}
