package webhooks

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"
)

// deaf is a transport that ignores contexts. It returns when over is closed.
type deaf struct{ over chan struct{} }

func (d deaf) RoundTrip(*http.Request) (*http.Response, error) {
	<-d.over
	return nil, net.ErrClosed
}

// The time limit holds even if the transport ignores it.
func TestTimeLimitHoldsWhateverTheTransportDoes(t *testing.T) {
	transport := deaf{make(chan struct{})}
	t.Cleanup(func() { close(transport.over) })
	p := NewPoster(PosterConfig{Client: &http.Client{Transport: transport}, Now: time.Now, Timeout: 10 * time.Millisecond})
	if a := p.Ping(context.Background(), Endpoint{URL: "http://a.example/", Secret: "whsec_test"}, "dlv_1", nil); a.Error != "no answer within 10ms" {
		t.Errorf("it ended with %q", a.Error)
	}
}
