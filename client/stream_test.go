package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestStreamEvents has a stream that breaks in the middle of a message, a service that is
// down, and a stream that is continued.
func TestStreamEvents(t *testing.T) {
	first := "retry: 2000\nid: c0\n\n: nothing yet\n\nid: c1\nevent: invoice.paid\ndata: " + body("invoice.paid", "{}") + "\n\nid: c2\ndata: {"
	second := "id: c2\r\ndata: " + strings.Replace(body("invoice.paid", "{}"), "evt_1", "evt_2", 1) + "\r\n\r\n"
	c, e, k := with(t, answers(http.StatusOK, first), problem(503, apitypes.CodeUnavailable), breaks(errNoListener),
		answers(http.StatusOK, second), problem(401, apitypes.CodeUnauthorized))
	var got []string
	for event, err := range c.StreamEvents(t.Context(), client.EventFilter{MerchantID: "acme"}, client.AfterEnd) {
		if err != nil {
			got = append(got, err.Error())
			continue
		}
		got = append(got, event.Position+" "+event.Event.ID)
	}
	expect.NoDiff(t, cmp.Diff([]string{"c1 evt_1", "c2 evt_2", "client: GET /api/events/stream: answered 401 unauthorized: D. (2 attempts)"}, got), "events")
	var after []string
	for _, query := range e.queries {
		after = append(after, query.Get("merchantId")+" "+query.Get("after"))
	}
	expect.NoDiff(t, cmp.Diff([]string{"acme end", "acme c1", "acme c1", "acme c1", "acme c2"}, after), "positions")
	want := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 500 * time.Millisecond}
	expect.NoDiff(t, cmp.Diff(want, k.waited), "waits")
}

// TestSilentStream has a stream that is silent for longer than the service ever is.
func TestSilentStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &exchanges{outcomes: []outcome{{hangs: true}, problem(404, apitypes.CodeNotFound)}}
		c, err := client.New("http://service.example", client.WithHTTPClient(&http.Client{Transport: e}), client.WithRandom(zeros{}))
		expect.OK(t, err)
		start := time.Now()
		for _, err := range c.StreamEvents(t.Context(), client.EventFilter{}, client.AfterStart) {
			if refused := (*client.Error)(nil); !errors.As(err, &refused) {
				t.Errorf("the error is %v", err)
			}
		}
		if took := time.Since(start); took != 45*time.Second+client.FirstDelay || len(e.sent) != 2 {
			t.Errorf("it took %s and %d requests", took, len(e.sent))
		}

		e.outcomes, e.sent = []outcome{{hangs: true}}, nil
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		for _, err := range c.StreamEvents(ctx, client.EventFilter{}, client.AfterStart) {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the error is %v", err)
			}
		}
	})
}

func TestStreamEndsWithItsReader(t *testing.T) {
	c, e, _ := with(t, answers(http.StatusOK, strings.Repeat("id: c1\ndata: "+body("invoice.paid", "{}")+"\n\n", 2)))
	for _, err := range c.StreamEvents(t.Context(), client.EventFilter{}, client.AfterStart) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	if len(e.sent) != 1 {
		t.Errorf("%d requests", len(e.sent))
	}
	c, _, _ = with(t, answers(http.StatusOK, "data: {}\n\n"))
	failed := 0
	for _, err := range c.StreamEvents(t.Context(), client.EventFilter{}, client.AfterStart) {
		if failed++; err == nil {
			t.Error("what is not an event is yielded")
		}
	}
	if failed != 1 {
		t.Errorf("%d errors", failed)
	}
}

func TestAwaitInvoice(t *testing.T) {
	open, paid := `{"invoice":{"id":"inv_1","status":"open"}}`, `{"invoice":{"id":"inv_1","status":"paid"}}`
	c, e, _ := with(t, answers(http.StatusOK, open), problem(503, apitypes.CodeUnavailable), answers(http.StatusOK, paid))
	got, err := c.AwaitInvoice(t.Context(), "inv_1", apitypes.StatusOpen)
	if err != nil || got.Status != apitypes.StatusPaid || len(e.sent) != 3 || e.queries[2].Encode() != "status=open&wait=60" {
		t.Errorf("%+v, %v after %q", got, err, e.queries)
	}
	// A request with wait takes up to a minute more.
	synctest.Test(t, func(t *testing.T) {
		e := &exchanges{outcomes: []outcome{{hangs: true}, {hangs: true}}}
		c := client.Must(client.New("http://service.example", client.WithHTTPClient(&http.Client{Transport: e})))
		start := time.Now()
		if _, err := c.AwaitInvoice(t.Context(), "inv_1", apitypes.StatusOpen); err == nil || time.Since(start) != time.Minute+client.DefaultTimeout {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}

// TestStreamDeliveries reads a stream that breaks: it is not continued.
func TestStreamDeliveries(t *testing.T) {
	record := `{"event":` + body("invoice.paid", "{}") + `,"merchantId":"acme","delivery":{"id":"dlv_1","status":"pending","attempts":0}}`
	c, e, _ := with(t, answers(http.StatusOK, "retry: 2000\nid: c0\n\n: nothing yet\n\nid: c1\nevent: invoice.paid\ndata: "+record+"\n\nid: c2\ndata: {"))
	var got []string
	for m, err := range c.StreamDeliveries(t.Context(), client.EventFilter{MerchantID: "acme"}, "c0") {
		switch {
		case err != nil:
			got = append(got, "error")
		case m.Record == nil:
			got = append(got, m.Position)
		default:
			got = append(got, m.Position+" "+m.Record.ID()+" "+m.Record.Delivery.ID)
		}
	}
	if diff := cmp.Diff([]string{"c0", "c0", "c1 evt_1 dlv_1", "error"}, got); diff != "" || e.queries[0].Encode() != "after=c0&include=deliveries&merchantId=acme" {
		t.Errorf("asked for %s (-want +got):\n%s", e.queries[0].Encode(), diff)
	}
	for text, want := range map[string]int{"data: {}\n\n": 1, "data: x\n\n": 1, "id: c1\n\n": 1} {
		c, _, _ := with(t, answers(http.StatusOK, text))
		errs := 0
		for _, err := range c.StreamDeliveries(t.Context(), client.EventFilter{}, client.AfterEnd) {
			if err != nil {
				errs++
			}
		}
		if errs != want {
			t.Errorf("%q: %d errors, want %d", text, errs, want)
		}
	}
	c, e, _ = with(t, answers(http.StatusOK, "id: c0\n\nid: c1\n\n"))
	for _, err := range c.StreamDeliveries(t.Context(), client.EventFilter{}, client.AfterEnd) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	if len(e.sent) != 1 {
		t.Errorf("%d requests", len(e.sent))
	}
}

// TestSlowReader has a caller who takes longer for an event than a stream may be silent.
func TestSlowReader(t *testing.T) {
	event := body("invoice.paid", "{}")
	record := `{"event":` + event + `,"merchantId":"acme","delivery":{"id":"dlv_1","status":"pending","attempts":0}}`
	synctest.Test(t, func(t *testing.T) {
		c := client.Must(client.New("http://service.example", client.WithHTTPClient(&http.Client{Transport: &slow{kind: "text/event-stream", parts: []part{
			{0, "id: c1\ndata: " + record + "\n\n"}, {30 * time.Second, ": ping\n"}, {30 * time.Second, "id: c2\ndata: " + record + "\n\n"},
		}}})))
		got := 0
		for m, err := range c.StreamDeliveries(t.Context(), client.EventFilter{}, client.AfterEnd) {
			if m.Record == nil {
				if !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("the stream ended with %v", err)
				}
				break
			}
			got++
			<-time.After(time.Minute)
		}
		if got != 2 {
			t.Errorf("%d events came, want 2", got)
		}
	})
}

// endless is a text that is repeated, beyond the limit of any client.
type endless struct {
	text string
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.read > 64<<20 {
		return 0, io.EOF
	}
	n := len(p) - len(p)%len(e.text)
	copy(p, strings.Repeat(e.text, n/len(e.text)))
	e.read += n
	return n, nil
}

// TestEndlessMessages has lines without an end, with and without content.
func TestEndlessMessages(t *testing.T) {
	for _, text := range []string{"data:\n", "data: x\n", "data: " + strings.Repeat("x", 1000) + "\n", "data"} {
		e := &endless{text: text}
		c, _, _ := with(t, outcome{status: http.StatusOK, header: http.Header{"Content-Type": {"text/event-stream"}}, body: e}, problem(401, apitypes.CodeUnauthorized))
		for _, err := range c.StreamEvents(t.Context(), client.EventFilter{}, client.AfterEnd) {
			if err == nil || !strings.Contains(err.Error(), "a message of the stream exceeds 2097152 bytes") || e.read > 16<<20 {
				t.Errorf("%.10q: the error is %v after %d bytes", text, err, e.read)
			}
		}
	}
}
