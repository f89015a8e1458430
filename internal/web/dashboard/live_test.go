package dashboard_test

import (
	"bufio"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/dashboard"
)

// stream opens a stream of a page, and returns a channel with the data of its messages, which
// is closed when the stream ends.
func (p *person) stream(query string) <-chan string {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/dashboard/live"+query, nil)
	expect.OK(p.t, err)
	client := http.Client{Transport: &http.Transport{}, Jar: p.Jar}
	resp, err := client.Do(r) //nolint:bodyclose // the clean-up closes it
	expect.OK(p.t, err)
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("X-Accel-Buffering") != "no" {
		p.t.Fatalf("the stream is answered %d %v", resp.StatusCode, resp.Header)
	}
	messages, ended := make(chan string, 100), make(chan struct{})
	go func() {
		defer close(ended)
		defer close(messages)
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				messages <- data
			}
		}
	}()
	p.t.Cleanup(func() {
		cancel()
		<-ended
		expect.NoError(p.t, resp.Body.Close())
		client.CloseIdleConnections()
	})
	return messages
}

// awaitVersion waits for a version other than those before.
func (w *world) awaitVersion(messages <-chan string, known ...string) string {
	w.t.Helper()
	got := ""
	w.await("message", func() bool {
		select {
		case data, ok := <-messages:
			if !ok {
				w.t.Fatal("the stream ended")
			}
			got = data
		default:
		}
		return got != "" && !slices.Contains(known, got)
	})
	return got
}

// TestLive sends open pages a message for each change.
func TestLive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	messages := w.person("acme", access.Read).stream("")
	version := w.awaitVersion(messages)
	for range 3 { // the first number may be about an earlier change
		w.invoice("acme", member{})
		version = w.awaitVersion(messages, version)
	}
}

// TestLiveEnds ends streams with their session and their key, and limits the streams of a person.
func TestLiveEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	maria, other := w.person("acme", access.Read), w.person("acme", access.Read)
	session, key := maria.stream(""), other.stream("")
	ended := func(messages <-chan string) func() bool {
		return func() bool {
			select {
			case _, ok := <-messages:
				return !ok
			default:
				return false
			}
		}
	}
	maria.post("/dashboard/sign-out", url.Values{})
	w.await("end of the stream of a session that was ended", ended(session))
	w.operator.api("DELETE", "/api/keys/"+other.id, nil, nil)
	w.await("end of the stream of a key that was revoked", ended(key))
	if got := other.get("/dashboard/live"); !strings.HasPrefix(got.path, "/dashboard/sign-in") {
		t.Errorf("a revoked key's stream leads to %s", got.path)
	}
	maker, holder := w.person("acme", access.Admin), w.person("acme", access.Read)
	var link struct{ Path string }
	maker.api("POST", "/api/sign-in-links", map[string]string{"keyId": holder.id}, &link)
	_, token, _ := strings.Cut(link.Path, "link=")
	guest := w.guest()
	guest.post("/dashboard/sign-in", url.Values{"link": {token}}).want(t, http.StatusOK)
	entered := guest.stream("")
	w.operator.api("DELETE", "/api/keys/"+maker.id, nil, nil)
	w.await("end of the stream of a session whose link a revoked key made", ended(entered))
	many := w.person("acme", access.Read)
	for range dashboard.StreamsOfKey {
		many.stream("")
	}
	many.get("/dashboard/live").want(t, http.StatusTooManyRequests)
	w.person("acme", access.Read).stream("")
}

// TestSuggestions suggests the search's results, as JSON.
func TestSuggestions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.invoice("acme", member{"reference": "<b>order</b> 7"})
	acme := w.person("acme", access.Read)
	for query, want := range map[string]string{
		"<b>order</b> 7": made.ID, made.ID: made.ID, "ref_00000000000000000000000000": "/dashboard/refunds/ref_00000000000000000000000000", "nothing": "[]\n", "": "[]\n", "0x12": "[]\n",
	} {
		got := acme.get("/dashboard/search/suggestions?" + url.Values{"q": {query}}.Encode())
		if got.status != http.StatusOK || got.header.Get("Content-Type") != "application/json" || !strings.Contains(got.body, want) {
			t.Errorf("%q is answered %d %s", query, got.status, got.body)
		}
	}
	if got := w.person("globex", access.Read).get("/dashboard/search/suggestions?q=" + made.ID); got.body != "[]\n" {
		t.Errorf("another merchant is shown %s", got.body)
	}
}

// TestOpenPageIsNoUse expects a session to end for lack of use although an open page reads itself again.
func TestOpenPageIsNoUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	refresh := func(p *person) answer {
		p.t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/dashboard/invoices", nil)
		expect.OK(t, err)
		r.Header.Set("Quittance-Refresh", "1")
		resp, err := p.Do(r)
		expect.OK(t, err)
		expect.OK(t, resp.Body.Close())
		return answer{status: resp.StatusCode, path: resp.Request.URL.Path}
	}
	away, present := w.person("acme", access.Read), w.person("acme", access.Read)
	w.forward(7 * time.Hour)
	if got := refresh(away); got.status != http.StatusOK || got.path != "/dashboard/invoices" {
		t.Errorf("the open page leads to %s, which answers %d", got.path, got.status)
	}
	present.get("/dashboard/invoices").want(t, http.StatusOK)
	w.forward(6 * time.Hour)
	if got := refresh(away); got.path != "/dashboard/sign-in" {
		t.Errorf("the page that was left open leads to %s, which answers %d", got.path, got.status)
	}
	present.get("/dashboard/invoices").want(t, http.StatusOK, "Nothing was found.")
}
