package dashboard

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestStreamsAreShared opens as many streams of one merchant as permitted, with many keys. The people
// of other merchants and of the operator get theirs, and closed streams are free again.
func TestStreamsAreShared(t *testing.T) {
	t.Parallel()
	l := newLiveStreams(nil, time.Now)
	// open opens streams of a merchant, and returns how many it got.
	open := func(merchantID string) (all []access.Principal) {
		for key := range 100 {
			p := access.Principal{MerchantID: merchantID, KeyID: fmt.Sprint("key_", merchantID, key)}
			for {
				err := l.join(p)
				if exceeded := (*limits.ExceededError)(nil); errors.As(err, &exceeded) && exceeded.RetryAfter == "60" {
					break
				}
				expect.OK(t, err)
				all = append(all, p)
			}
		}
		return all
	}
	acme := open("acme")
	if len(acme) != MaxStreams/2 {
		t.Errorf("one merchant has %d streams, want %d", len(acme), MaxStreams/2)
	}
	for _, other := range []string{"globex", "", "initech"} {
		if n := len(open(other)); n < StreamsOfKey {
			t.Errorf("%q gets %d streams, want at least those of a person", other, n)
		}
	}
	for _, p := range acme {
		l.leave(p, nil)
	}
	if n := len(open("acme")); n < MaxStreams/4 {
		t.Errorf("after it closed its streams, the merchant gets %d", n)
	}
}
