package client_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/test/expect"
)

// gone answers that the log cannot be continued from a position.
func gone(reason, after string) outcome {
	return answers(http.StatusGone, fmt.Sprintf(`{"status":410,"code":"cursor_gone","detail":"D.","reason":%q,"after":%q}`, reason, after))
}

// eventPage answers with the events of the numbers, and a position.
func eventPage(next string, numbers ...int) outcome {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = fmt.Sprintf(`{"event":{"id":"evt_%d","type":"invoice.paid","createdAt":1,"data":{}},"merchantId":"acme"}`, n)
	}
	return answers(http.StatusOK, fmt.Sprintf(`{"events":[%s],"nextCursor":%q}`, strings.Join(texts, ","), next))
}

func ids(events []apitypes.EventRecord) (all []string) {
	for _, e := range events {
		all = append(all, e.ID())
	}
	return all
}

// TestEventsAfterARestore pages over two restores and a removal.
func TestEventsAfterARestore(t *testing.T) {
	c, e, _ := with(t,
		eventPage("c3", 1, 2, 3),
		gone("restored", "d1"), eventPage("d3", 2, 3), eventPage("d4", 4), // 2 and 3 happened again
		gone("replaced", "e0"), gone("removed", "e1"),
		eventPage("e5", 4, 5),
		eventPage("c3", 1, 2, 3), // another caller, from the beginning
	)
	var got []string
	at := client.AfterStart
	for range 4 {
		events, next, err := c.EventsAfter(t.Context(), client.EventFilter{}, at)
		var lost *client.EventsLostError
		switch {
		case errors.As(err, &lost):
			got = append(got, "lost "+lost.Position+" "+lost.Detail)
		case err != nil:
			t.Fatal(err)
		}
		got = append(got, ids(events)...)
		at = next
	}
	got = append(got, "at "+at)
	events, _, err := c.EventsAfter(t.Context(), client.EventFilter{}, client.AfterStart)
	if diff := cmp.Diff([]string{"evt_1", "evt_2", "evt_3"}, ids(events)); diff != "" || err != nil {
		t.Errorf("another caller, %v (-want +got):\n%s", err, diff)
	}
	expect.NoDiff(t, cmp.Diff([]string{"evt_1", "evt_2", "evt_3", "evt_4", "lost e1 D.", "evt_5", "at e5"}, got), "")
	var asked []string
	for _, query := range e.queries {
		asked = append(asked, query.Get("after"))
	}
	expect.NoDiff(t, cmp.Diff([]string{"start", "c3", "d1", "d3", "d4", "e0", "e1", "start"}, asked), "positions")
}

// TestRecentEventsAreBounded restores a log further back than the client remembers.
func TestRecentEventsAreBounded(t *testing.T) {
	all := make([]int, client.MaxRecentEvents+1)
	for i := range all {
		all[i] = i
	}
	c, _, _ := with(t, eventPage("c1", all...), gone("restored", "d0"), eventPage("d1", all...))
	_, next, err := c.EventsAfter(t.Context(), client.EventFilter{}, client.AfterStart)
	expect.OK(t, err)
	events, _, err := c.EventsAfter(t.Context(), client.EventFilter{}, next)
	if diff := cmp.Diff([]string{"evt_0"}, ids(events)); diff != "" || err != nil {
		t.Errorf("again, %v (-want +got):\n%s", err, diff)
	}
}

// TestPositionsAreBounded follows a log from more positions than the client remembers.
func TestPositionsAreBounded(t *testing.T) {
	const followers = 17
	outcomes := []outcome{}
	for i := range followers {
		outcomes = append(outcomes, eventPage(fmt.Sprint("c", i), i))
	}
	for _, i := range []int{1, 0} {
		outcomes = append(outcomes, gone("restored", "d"), eventPage("d1", i, 99))
	}
	c, _, _ := with(t, outcomes...)
	for range followers {
		expect.Success(t)(c.EventsAfter(t.Context(), client.EventFilter{}, client.AfterStart))
	}
	for want, at := range []string{1: "c1", 2: "c0"} { // events before the first position are forgotten
		if at == "" {
			continue
		}
		events, _, err := c.EventsAfter(t.Context(), client.EventFilter{}, at)
		if len(events) != want || err != nil {
			t.Errorf("from position %s: %v, %v; want %d", at, ids(events), err, want)
		}
	}
}

// TestGoneWithoutEnd has a service that always returns another position, and one that returns no position.
func TestGoneWithoutEnd(t *testing.T) {
	outcomes := []outcome{}
	for i := range 9 {
		outcomes = append(outcomes, gone("restored", fmt.Sprint("d", i)))
	}
	c, e, _ := with(t, append(outcomes, gone("restored", ""))...)
	for _, sent := range []int{9, 10} {
		_, next, err := c.EventsAfter(t.Context(), client.EventFilter{}, "c1")
		if refused := (*client.Error)(nil); !errors.As(err, &refused) || refused.Code != apitypes.CodeCursorGone || next != "c1" || len(e.queries) != sent {
			t.Errorf("got %q, %v after %d requests", next, err, len(e.queries))
		}
	}
}

// streamOf answers with a stream of the events with these numbers, at positions that begin with a letter.
func streamOf(letter string, numbers ...int) outcome {
	text := "id: " + letter + "\n\n"
	for _, n := range numbers {
		text += fmt.Sprintf("id: %s%d\ndata: %s\n\n", letter, n, strings.Replace(body("invoice.paid", "{}"), "evt_1", fmt.Sprint("evt_", n), 1))
	}
	return answers(http.StatusOK, text)
}

// TestStreamAfterARestore follows a stream over a restore and a removal, and continues in another stream.
func TestStreamAfterARestore(t *testing.T) {
	c, e, _ := with(t, streamOf("c", 1, 2, 3), gone("restored", "d"), streamOf("d", 3, 2, 4), gone("removed", "e"), streamOf("e", 5), problem(401, apitypes.CodeUnauthorized))
	var got []string
	at := client.AfterStart
	for range 2 {
		for event, err := range c.StreamEvents(t.Context(), client.EventFilter{}, at) {
			var lost *client.EventsLostError
			switch {
			case errors.As(err, &lost):
				at = lost.Position
				got = append(got, "lost "+at)
			case err != nil:
				got = append(got, "error")
			default:
				at = event.Position
				got = append(got, at+" "+event.Event.ID)
			}
		}
	}
	expect.NoDiff(t, cmp.Diff([]string{"c1 evt_1", "c2 evt_2", "c3 evt_3", "d4 evt_4", "lost e", "e5 evt_5", "error"}, got), "")
	var asked []string
	for _, query := range e.queries {
		asked = append(asked, query.Get("after"))
	}
	expect.NoDiff(t, cmp.Diff([]string{"start", "c3", "d", "d4", "e", "e5"}, asked), "positions")
}

// TestDeliveriesAfterARestore has an event that happened again, and is then redelivered.
func TestDeliveriesAfterARestore(t *testing.T) {
	message := func(id, more string) string {
		return "id: " + id + "\ndata: {\"event\":" + body("invoice.paid", "{}") + ",\"merchantId\":\"acme\"" + more + "}\n\n"
	}
	c, _, _ := with(t, answers(http.StatusOK, message("c1", "")+message("c2", "")), // not marked by an older service
		gone("restored", "d0"), answers(http.StatusOK, message("d1", "")+message("d2", `,"redelivered":true`)), gone("removed", "e0"))
	var got []string
	at := client.AfterStart
	for range 3 {
		for m, err := range c.StreamDeliveries(t.Context(), client.EventFilter{}, at) {
			var lost *client.EventsLostError
			switch {
			case errors.As(err, &lost):
				got = append(got, "lost "+lost.Position)
			case err == nil && m.Record != nil:
				got = append(got, m.Position)
			}
			if err == nil {
				at = m.Position
			}
		}
	}
	expect.NoDiff(t, cmp.Diff([]string{"c1", "c2", "d2", "lost e0"}, got), "")
}

// TestListAfterARestore has a list that begins again, and one with events that are sent again.
func TestListAfterARestore(t *testing.T) {
	c, e, _ := with(t, eventPage("c", 5, 4), gone("restored", "d"), eventPage("d1", 6, 5), answers(http.StatusOK, `{"events":[{"event":{"id":"evt_1"},"merchantId":"acme"}]}`),
		answers(http.StatusOK, `{"redelivered":2,"nextCursor":"c"}`), gone("restored", "d"), answers(http.StatusOK, `{"redelivered":1}`))
	var got []string
	for event, err := range c.Events(t.Context(), client.EventFilter{}) {
		expect.OK(t, err)
		got = append(got, event.ID())
	}
	if diff := cmp.Diff([]string{"evt_5", "evt_4", "evt_6", "evt_1"}, got); diff != "" || e.queries[2].Get("cursor") != "d" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n, err := c.RedeliverEvents(t.Context(), apitypes.RedeliverEventsRequest{FailedOnly: true}); n != 3 || err != nil {
		t.Errorf("sent %d again, %v", n, err)
	}
}
