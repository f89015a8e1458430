package identity

import (
	"errors"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// silent is a provider that never answers.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestDeadline asks a provider that is silent, twice at a time.
func TestDeadline(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(t *testing.T, p *Provider) error{
		"begin": func(t *testing.T, p *Provider) error {
			_, err := p.Begin(t.Context(), "flow", false, false)
			return err
		},
		"finish": func(t *testing.T, p *Provider) error {
			_, err := p.Finish(t.Context(), "flow", url.Values{"state": {Flow("flow").hash("state")}, "code": {"x"}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, begun := New(Config{Issuer: "https://id.example", Now: time.Now}), time.Now()
				p.http.Transport = silent{}
				var both sync.WaitGroup
				for range 2 {
					both.Go(func() {
						if err := ask(t, p); !errors.Is(err, ErrDown) || time.Since(begun) > Deadline {
							t.Errorf("after %s: %v", time.Since(begun), err)
						}
					})
				}
				both.Wait()
			})
		})
	}
}
