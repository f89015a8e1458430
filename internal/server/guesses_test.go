package server

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apikey"
	"github.com/quittance/quittance/internal/clientip"
	"github.com/quittance/quittance/internal/ratelimit"
)

// fakeKeys knows the keys "new" and "held", the second in memory.
type fakeKeys struct{ lookups int }

func (f *fakeKeys) Authenticate(_ context.Context, text string) (access.Principal, error) {
	f.lookups++
	switch text {
	case "":
		return access.Principal{}, apikey.ErrMissing
	case "new", "held":
		return access.Principal{KeyID: text}, nil
	case "broken":
		return access.Principal{}, errors.New("no database")
	}
	return access.Principal{}, apikey.ErrUnknown
}

func (f *fakeKeys) Holds(text string) bool { return text == "held" }

func TestGuesses(t *testing.T) {
	t.Parallel()
	l, keys := newLimited(Config{}), new(fakeKeys)
	a := limitedAuthenticator{keys, l.limits}
	try := func(from, text string) error {
		_, err := a.Authenticate(clientip.NewContext(t.Context(), netip.MustParseAddr(from)), text)
		return err
	}
	for range 100 { // none of these is a guess
		if err := try("198.51.100.1", "new"); err != nil {
			t.Fatal(err)
		}
		if err := try("198.51.100.1", ""); !errors.Is(err, apikey.ErrMissing) {
			t.Fatal(err)
		}
		if err := try("198.51.100.1", "broken"); err == nil {
			t.Fatal("it is not broken")
		}
	}
	for range maxGuesses {
		if err := try("198.51.100.1", "guess"); !errors.Is(err, apikey.ErrUnknown) {
			t.Fatal(err)
		}
	}
	keys.lookups = 0
	var exceeded *ratelimit.ExceededError
	for _, text := range []string{"guess", "another", "new"} {
		if err := try("198.51.100.1", text); !errors.As(err, &exceeded) || exceeded.RetryAfter != "1" || keys.lookups > 0 {
			t.Errorf("beyond the limit %s gives %v after %d lookups", text, err, keys.lookups)
		}
	}
	if err := try("198.51.100.1", "held"); err != nil {
		t.Errorf("a key in use from the guesser's address: %v", err)
	}
	if err := try("198.51.100.1", ""); !errors.Is(err, apikey.ErrMissing) {
		t.Errorf("no key from the guesser's address: %v", err)
	}
	if err := try("198.51.100.2", "new"); err != nil {
		t.Errorf("another address: %v", err)
	}
	for range maxGuesses + 1 {
		if err := try("127.0.0.1", "guess"); !errors.Is(err, apikey.ErrUnknown) {
			t.Errorf("a program on this machine: %v", err)
		}
	}
	l.now = l.now.Add(time.Second)
	if err := try("198.51.100.1", "new"); err != nil {
		t.Errorf("after a second: %v", err)
	}
	if err := try("198.51.100.1", "guess"); !errors.Is(err, apikey.ErrUnknown) {
		t.Errorf("the guess of the next second: %v", err)
	}
	if err := try("198.51.100.1", "guess"); !errors.As(err, &exceeded) {
		t.Errorf("a second one: %v", err)
	}
}
