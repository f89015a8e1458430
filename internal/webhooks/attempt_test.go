package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/test/expect"
)

var created = time.UnixMilli(1_700_000_000_000)

// An endpoint that always fails is tried as scheduled, with growing pauses,
// until just before the deadline and no longer.
func TestScheduleOfADeadEndpoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		deadline := created.Add(24 * time.Hour)
		now := created
		for number := 1; ; number++ {
			took := time.Duration(rapid.Int64Range(0, int64(5*time.Second)).Draw(t, "took"))
			jitter := rapid.Float64Range(0, 1).Filter(func(f float64) bool { return f < 1 }).Draw(t, "jitter")
			failed := now.Add(took)
			next, more := RetryAt(number, failed, deadline, 0, jitter)
			if !more {
				if number != 13 {
					t.Fatalf("the last attempt was number %d, want 13", number)
				}
				if left := deadline.Sub(now); left < time.Minute || left > 10*time.Minute {
					t.Fatalf("the last attempt started %s before the deadline, want 1 to 10 minutes", left)
				}
				return
			}
			pause := next.Sub(failed)
			if number <= len(delays) {
				nominal := delays[number-1]
				if least, most := nominal*8/10, nominal*12/10; pause < least || pause > most {
					t.Fatalf("pause %d is %s, want %s to %s", number, pause, least, most)
				}
			}
			if next.After(deadline) {
				t.Fatalf("attempt %d is due %s after the deadline", number+1, next.Sub(deadline))
			}
			now = next
		}
	})
}

// Whatever receivers ask for, and however late a worker is, a retry is in the future and before the deadline. It is not
// earlier than the receiver asked for unless the deadline is near, and never earlier than without a Retry-After.
func TestScheduleWithRetryAfter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		deadline := created.Add(24 * time.Hour)
		number := rapid.IntRange(1, 14).Draw(t, "number")
		failed := created.Add(time.Duration(rapid.OneOf(
			rapid.Int64Range(0, int64(25*time.Hour)),
			rapid.Int64Range(int64(24*time.Hour-2*FinalWindow), int64(24*time.Hour)), // near the limits of the rules
		).Draw(t, "failed")))
		asked := time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "asked"))
		jitter := rapid.Float64Range(0, 0.999).Draw(t, "jitter")
		plain, more := RetryAt(number, failed, deadline, 0, jitter)
		due, alsoMore := RetryAt(number, failed, deadline, asked, jitter)
		if more != alsoMore {
			t.Fatalf("more attempts: %t, and %t when asked for a pause", more, alsoMore)
		}
		if !more {
			if number < maxAttempts && failed.Before(deadline.Add(-FinalWindow)) {
				t.Fatalf("gave up after attempt %d, %s before the deadline", number, deadline.Sub(failed))
			}
			return
		}
		if !due.After(failed) || due.Before(plain) || due.After(deadline.Add(-finalMargin)) {
			t.Fatalf("due %s after the failure and %s before the deadline; unasked %s after the failure",
				due.Sub(failed), deadline.Sub(due), plain.Sub(failed))
		}
		if asked := failed.Add(asked); due.Before(asked) && due.Before(deadline.Add(-FinalWindow)) {
			t.Fatalf("due %s before the receiver asked for", asked.Sub(due))
		}
	})
}

// The edges of the last attempt's time.
func TestScheduleEnds(t *testing.T) {
	deadline := created.Add(24 * time.Hour)
	for _, c := range []struct {
		left   time.Duration // from the failure to the deadline
		jitter float64
		want   time.Duration // from the next attempt to the deadline; 0 without a next attempt
	}{
		{FinalWindow + time.Nanosecond, 0, FinalWindow},
		{FinalWindow + time.Nanosecond, 0.5, 5*time.Minute + 30*time.Second},
		{FinalWindow, 0, 0},
		{FinalWindow, 0.5, 0},
		{finalMargin, 0.5, 0},
		{0, 0.5, 0},
		{-time.Hour, 0.5, 0},
	} {
		due, more := RetryAt(1, deadline.Add(-c.left), deadline, 24*time.Hour, c.jitter)
		if more != (c.want > 0) || more && deadline.Sub(due) != c.want {
			t.Errorf("failed %s before the deadline: next %s before it (%t), want %s", c.left, deadline.Sub(due), more, c.want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"":                              0,
		"0":                             0,
		"7":                             7 * time.Second,
		"86400":                         24 * time.Hour,
		"86401":                         24 * time.Hour,
		"18446744073709551615":          24 * time.Hour,
		"18446744073709551616":          0,
		"-1":                            0,
		"1.5":                           0,
		"soon":                          0,
		"Sun, 01 Mar 2026 12:02:00 GMT": 2 * time.Minute,
		"Sun, 01 Mar 2026 11:59:00 GMT": 0,
		"Sun, 01 Mar 2099 12:00:00 GMT": 24 * time.Hour,
	} {
		expect.Equal(t, retryAfter(text, now), want, "Retry-After %q: got", text)
	}
}

// TestOverslept has exchanges that took longer than allowed: an answer is the endpoint's, however long it took.
func TestOverslept(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	const limit = 5 * time.Second
	for name, c := range map[string]struct {
		answer Answer
		took   time.Duration
		want   bool
	}{
		"no answer in time":          {Answer{Err: failed}, limit, false},
		"no answer, a little late":   {Answer{Err: failed}, limit + oversleep, false},
		"no answer, later":           {Answer{Err: failed}, limit + oversleep + 1, true},
		"410 after a jump":           {Answer{Err: failed, Code: http.StatusGone}, 24 * time.Hour, false},
		"500 after a jump":           {Answer{Err: failed, Code: http.StatusInternalServerError}, 24 * time.Hour, false},
		"an accepted one after that": {Answer{Code: http.StatusOK}, 24 * time.Hour, false},
	} {
		expect.Equal(t, overslept(c.answer, c.took, limit), c.want, "%s:", name)
	}
}

func TestFaultOf(t *testing.T) {
	dial := func(at string, err error) error {
		op := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)}
		if at != "" {
			op.Addr = net.TCPAddrFromAddrPort(netip.MustParseAddrPort(at))
		}
		return fmt.Errorf("Post: %w", op)
	}
	lookup := func(text string) error {
		return fmt.Errorf("dial: %w", &net.DNSError{Err: text, Name: "a.example", IsNotFound: true})
	}
	for name, c := range map[string]struct {
		err   error
		short bool // of descriptors
		want  Fault
	}{
		"no descriptor":                  {err: dial("", syscall.EMFILE), want: FaultShortage},
		"none on the machine":            {err: dial("", syscall.ENFILE), want: FaultShortage},
		"no buffer":                      {err: dial("192.0.2.1:443", syscall.ENOBUFS), want: FaultShortage},
		"no memory":                      {err: dial("192.0.2.1:443", syscall.ENOMEM), want: FaultShortage},
		"our own bound":                  {err: fmt.Errorf("Post: %w", errNoConnection), want: FaultShortage},
		"a lookup during a shortage":     {err: lookup("no such host"), short: true, want: FaultShortage},
		"a lookup without descriptor":    {err: lookup("dial udp 127.0.0.53:53: socket: too many open files"), want: FaultShortage},
		"a lookup":                       {err: lookup("no such host"), want: FaultTheirs},
		"no local port":                  {err: dial("192.0.2.1:443", syscall.EADDRNOTAVAIL), want: FaultStopped},
		"an IPv6 address without IPv6":   {err: dial("[2001:db8::1]:443", syscall.EADDRNOTAVAIL), want: FaultTheirs},
		"refused":                        {err: dial("192.0.2.1:443", syscall.ECONNREFUSED), want: FaultTheirs},
		"refused during a shortage":      {err: dial("192.0.2.1:443", syscall.ECONNREFUSED), short: true, want: FaultTheirs},
		"too slow":                       {err: context.DeadlineExceeded, want: FaultTheirs},
		"a text that a receiver made up": {err: errors.New("too many open files"), want: FaultTheirs},
	} {
		expect.Equal(t, faultOf(c.err, func() bool { return c.short }), c.want, "%s:", name)
	}
}

func TestExcerpt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ begin, want string }{
		"nothing":                 {"", ""},
		"text":                    {"thanks ☕\n", "thanks ☕\n"},
		"cut in a character":      {"caf\xc3", "caf"},
		"cut in a long character": {"x\xf0\x9f\xa7", "x"},
		"compressed":              {"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", "(10 bytes that are no text)"},
		"a zero":                  {"a\x00b", "(3 bytes that are no text)"},
		"bad in the middle":       {"a\xffbcdefgh", "(9 bytes that are no text)"},
	} {
		expect.Equal(t, excerpt([]byte(c.begin)), c.want, "%s:", name)
	}
}

func TestRedact(t *testing.T) {
	t.Parallel()
	e := Endpoint{Secret: "whsec_c2VjcmV0LWtleQ==", Others: []string{"an older one", "whsec_YS9i/2M+ZA=="}}
	for text, want := range map[string]string{
		"bad signature":                                 "bad signature",
		"expected whsec_c2VjcmV0LWtleQ== ":              "expected [redacted] ",
		"key c2VjcmV0LWtleQ== of you":                   "key [redacted] of you",
		"not an older one either":                       "not [redacted] either",
		`{"secret":"whsec_YS9i\/2M+ZA=="}`:              `{"secret":"[redacted]"}`,
		`{"key":"YS9i\/2M+ZA=="}`:                       `{"key":"[redacted]"}`,
		"key=YS9i%2F2M%2BZA%3D%3D&x":                    "key=[redacted]&x",
		`whsec_c29t\/ZQ\u003d%3D.`:                      "[redacted].",
		"whsec_c29tZWJvZHkgZWxzZQ==":                    "[redacted]",
		`{"Authorization":"Bearer sk_live_0123456789"}`: `{"Authorization":"[redacted]"}`,
		"t=1,v1=" + strings.Repeat("0a", 32) + ";":      "t=1,[redacted];",
		"v1," + strings.Repeat("Ab+/", 11) + "=":        "[redacted]",
	} {
		expect.Equal(t, e.redact(text, false), want, "%q became", text)
	}
}

// Parts of the URL are as secret as the signing secrets.
func TestRedactURL(t *testing.T) {
	t.Parallel()
	e := Endpoint{
		Secret: `a "quoted" secret`,
		URL:    "https://us%65r-name:pass-word@0123456789abcdef.hooks.example/short/segment/sk_live_01234567?key=hush-hush%2F7&v=1&loose-value",
	}
	for text, want := range map[string]string{
		"lookup 0123456789abcdef.hooks.example: no such host":        "lookup [redacted].hooks.example: no such host",
		"no /short/segment/sk_live_01234567 here":                    "no /short/segment/[redacted] here",
		"GET ?key=hush-hush%2F7&v=1":                                 "GET ?key=[redacted]&v=1",
		`{"key":"hush-hush/7","v":1}`:                                `{"key":"[redacted]","v":1}`,
		"user-name and pass-word, loose-value":                       "[redacted] and [redacted], [redacted]",
		`malformed HTTP status code "a \"quoted\" secret"`:           `malformed HTTP status code "[redacted]"`,
		"0123456789abcde and hush-hu are not the whole of anything.": "0123456789abcde and hush-hu are not the whole of anything.",
	} {
		expect.Equal(t, e.redact(text, false), want, "%q became", text)
	}
	for url, want := range map[string]string{
		"https://h.example/" + strings.Repeat("s", minSecretWord-1):     "kept",
		"https://h.example/" + strings.Repeat("s", minSecretWord):       "[redacted]",
		"https://h.example/?k=" + strings.Repeat("s", minSecretValue-1): "kept",
		"https://h.example/?k=" + strings.Repeat("s", minSecretValue):   "[redacted]",
	} {
		word := strings.TrimPrefix(strings.TrimPrefix(url, "https://h.example/"), "?k=")
		if want == "kept" {
			want = word
		}
		if got := (Endpoint{URL: url, Secret: "another secret"}).redact(word, false); got != want {
			t.Errorf("%q of %s became %q, want %q", word, url, got, want)
		}
	}
}

// Whole values of headers are redacted unless they are very short, and long words of them.
func TestRedactHeaders(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		strings.Repeat("s", minHeaderValue-1):            "kept",
		strings.Repeat("s", minHeaderValue):              "[redacted]",
		"Token " + strings.Repeat("s", minSecretValue-1): "[redacted]",
	} {
		if want == "kept" {
			want = text
		}
		e := Endpoint{URL: "https://h.example/", Secret: "another secret", Headers: []access.WebhookHeader{{Name: "X-A", Value: text}}}
		if got := e.redact("got "+text+".", false); got != "got "+want+"." {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	for n, want := range map[int]string{minSecretValue - 1: "kept", minSecretValue: "[redacted]"} {
		word := strings.Repeat("s", n)
		if want == "kept" {
			want = word
		}
		e := Endpoint{URL: "https://h.example/", Secret: "another secret", Headers: []access.WebhookHeader{{Name: "X-A", Value: "Token " + word}}}
		if got := e.redact("got "+word, false); got != "got "+want {
			t.Errorf("the word %q became %q, want %q", word, got, want)
		}
	}
}

// A secret at the edge of an excerpt is not shown in part.
func TestRedactCut(t *testing.T) {
	t.Parallel()
	const secret = "0123456789abcdef"
	e := Endpoint{Secret: secret}
	for text, want := range map[string]string{
		"key " + secret[:15]:               "key [redacted]",
		"key " + secret[:minSecretBegin]:   "key [redacted]",
		"key " + secret[:minSecretBegin-1]: "key " + secret[:minSecretBegin-1],
		secret[:9]:                         "[redacted]",
		"key " + secret[1:9]:               "key " + secret[1:9],
	} {
		expect.Equal(t, e.redact(text, true), want, "%q became", text)
	}
}
