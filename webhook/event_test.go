package webhook_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/webhook"
)

func TestParseEvent(t *testing.T) {
	body := `{"id":"evt_1","type":"invoice.paid","createdAt":1700000000,"new":[1],"data": {"amount":"18446744073709551616"}}`
	got, err := webhook.ParseEvent([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	want := webhook.Event{
		ID: "evt_1", Type: webhook.InvoicePaid, CreatedAt: 1_700_000_000,
		Data: json.RawMessage(`{"amount":"18446744073709551616"}`),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
}

func TestParseEventRefuses(t *testing.T) {
	for name, body := range map[string]string{
		"nothing":            ``,
		"no JSON":            `event`,
		"null":               `null`,
		"an array":           `[]`,
		"cut off":            `{"id":"evt_1","type":"invoice.paid","createdAt":1,"data":{}`,
		"trailing data":      `{"id":"evt_1","type":"invoice.paid","createdAt":1,"data":{}} {}`,
		"no id":              `{"type":"invoice.paid","createdAt":1,"data":{}}`,
		"empty id":           `{"id":"","type":"invoice.paid","createdAt":1,"data":{}}`,
		"number as id":       `{"id":7,"type":"invoice.paid","createdAt":1,"data":{}}`,
		"no type":            `{"id":"evt_1","createdAt":1,"data":{}}`,
		"no createdAt":       `{"id":"evt_1","type":"invoice.paid","data":{}}`,
		"createdAt zero":     `{"id":"evt_1","type":"invoice.paid","createdAt":0,"data":{}}`,
		"createdAt fraction": `{"id":"evt_1","type":"invoice.paid","createdAt":1.5,"data":{}}`,
		"createdAt text":     `{"id":"evt_1","type":"invoice.paid","createdAt":"1","data":{}}`,
		"no data":            `{"id":"evt_1","type":"invoice.paid","createdAt":1}`,
		"null data":          `{"id":"evt_1","type":"invoice.paid","createdAt":1,"data":null}`,
		"array as data":      `{"id":"evt_1","type":"invoice.paid","createdAt":1,"data":[]}`,
	} {
		got, err := webhook.ParseEvent([]byte(body))
		if !errors.Is(err, webhook.ErrInvalidEvent) {
			t.Errorf("%s: got %v, want ErrInvalidEvent", name, err)
		}
		if diff := cmp.Diff(webhook.Event{}, got); diff != "" {
			t.Errorf("%s: an event with the error: %s", name, diff)
		}
	}
}
