package server

import (
	"context"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apikey"
	"github.com/quittance/quittance/internal/clientip"
)

// keyAuthenticator finds the principal of a key. *apikey.Authenticator implements it.
type keyAuthenticator interface {
	Authenticate(ctx context.Context, text string) (access.Principal, error)
	// Holds reports whether a key was read before.
	Holds(text string) bool
}

// limitedAuthenticator is an authenticator that limits the wrong keys from a client
// address. Beyond the limit it refuses all keys from there but those that were read before,
// without a look into the database. Programs on the same machine are not limited unless
// they are proxies.
type limitedAuthenticator struct {
	keyAuthenticator
	limits *limits
}

// Authenticate implements api.Authenticator. Errors are those of the authenticator, and
// *ratelimit.ExceededError.
func (a limitedAuthenticator) Authenticate(ctx context.Context, text string) (access.Principal, error) {
	addr := clientip.FromContext(ctx)
	if text == "" || addr.IsLoopback() && !a.limits.proxied {
		return a.keyAuthenticator.Authenticate(ctx, text)
	}
	client := clientip.Network(addr)
	if err := a.limits.guesses.Peek(client).Err(); err != nil && !a.Holds(text) {
		a.limits.metrics.refused.WithLabelValues(a.limits.guesses.Limit().Name).Inc()
		return access.Principal{}, err
	}
	p, err := a.keyAuthenticator.Authenticate(ctx, text)
	if apikey.IsRefusal(err) {
		a.limits.guesses.Take(client)
	}
	return p, err
}
