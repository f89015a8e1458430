package server

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/limits"
)

// Limits of wrong keys from a client address. docs/operations.md has them as a table.
const (
	// maxRefusals is how many wrong keys are answered 401 in a row, and refusalWindow how long that quota
	// takes to refill. Further ones are answered 429.
	maxRefusals, refusalWindow = 200, 20 * time.Second
	// maxLookups is how many lookups of keys that were never read before may be in flight or have failed;
	// lookupWindow is how long that quota takes to refill.
	maxLookups, lookupWindow = 100, 20 * time.Second
	// maxRepeated is the same limit for keys beyond it that are presented again after retryPause.
	maxRepeated, repeatedWindow = 20, 20 * time.Second
	retryPause                  = time.Second
)

// guesses limits the keys from client addresses that are wrong or were never read.
// Programs on the same machine are not limited unless they are proxies.
//
// A key, or the token of a session, that this process has read before does not count against these
// limits. A token of lookups is taken before a key is looked up, and put back unless the key is
// wrong, so the lookups in progress are limited too.
type guesses struct {
	refusals limits.NetworkBuckets
	lookups  limits.NetworkBuckets
	// repeated are the lookups of keys that came back. They admit clients that share the address of a
	// guesser: clients repeat a key, and a guesser has no reason to.
	repeated limits.NetworkBuckets
	greylist *limits.Greylist[uint64] // by a part of a key's hash
	proxied  bool                     // as in limits
}

func newGuesses(proxied bool, now func() time.Time) *guesses {
	buckets := func(name string, quota int, window time.Duration) limits.NetworkBuckets {
		return limits.NewNetworkBuckets(limits.Limit{Name: name, Quota: quota, Window: window}, maxBuckets, now)
	}
	return &guesses{
		refusals: buckets("authentication", maxRefusals, refusalWindow),
		lookups:  buckets("lookup", maxLookups, lookupWindow),
		repeated: buckets("lookup", maxRepeated, repeatedWindow),
		greylist: limits.NewGreylist[uint64](retryPause, maxBuckets, now),
		proxied:  proxied,
	}
}

// client returns the client address of a request, and whether it is limited.
func (g *guesses) client(ctx context.Context) (netip.Addr, bool) {
	addr := limits.FromContext(ctx)
	return addr, g.proxied || !addr.IsLoopback()
}

// admit is an access.Admit. Its error is a *limits.ExceededError.
func (g *guesses) admit(ctx context.Context, keyHash [access.HashSize]byte) (done func(wrong bool), err error) {
	client, limited := g.client(ctx)
	if !limited {
		return func(bool) {}, nil
	}
	bucket := g.lookups
	if err := bucket.TakeOf(client).Err(); err != nil {
		bucket = g.repeated
		if !g.greylist.CameBack(binary.BigEndian.Uint64(keyHash[:])) || !bucket.TakeOf(client).OK {
			return nil, err
		}
	}
	return func(wrong bool) {
		if !wrong {
			bucket.Return(client)
		}
	}, nil
}

// admitToken is admit for the tokens of sessions and of links that sign in.
func (l *requestLimits) admitToken(ctx context.Context, tokenHash [access.HashSize]byte) (done func(wrong bool), err error) {
	done, err = l.guesses.admit(ctx, tokenHash)
	l.countExceeded(ctx, err)
	return done, err
}

// countExceeded counts a refusal by a limit, and notes it in the record of the request.
func (l *requestLimits) countExceeded(ctx context.Context, err error) {
	exceeded := (*limits.ExceededError)(nil)
	if !errors.As(err, &exceeded) {
		return
	}
	l.metrics.refused.WithLabelValues(exceeded.Limit).Inc()
	if record, ok := ctx.Value(requestRecordKey{}).(*requestRecord); ok {
		record.refusedBy = exceeded.Limit
	}
}

// limitedAuthenticator is an authenticator that limits the refusals of keys.
type limitedAuthenticator struct {
	*access.Authenticator
	limits *requestLimits
}

// Authenticate implements api.Authenticator. Errors are the authenticator's, also joined with an *limits.ExceededError.
func (a limitedAuthenticator) Authenticate(ctx context.Context, text string) (access.Principal, error) {
	p, err := a.Authenticator.Authenticate(ctx, text)
	if access.IsRefusal(err) {
		if client, limited := a.limits.guesses.client(ctx); limited {
			if exceeded := a.limits.guesses.refusals.TakeOf(client).Err(); exceeded != nil {
				err = errors.Join(exceeded, err) // streams end by the refusal
			}
		}
	}
	a.limits.countExceeded(ctx, err)
	return p, err
}
