package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/quittance/quittance/apitypes"
)

// Defaults and limits of calls and their attempts.
const (
	// DefaultTimeout bounds a call with all its attempts.
	DefaultTimeout = 60 * time.Second
	// DefaultAttemptTimeout bounds one attempt. The service takes up to 15 s.
	DefaultAttemptTimeout = 20 * time.Second
	// DefaultRetries is the number of attempts after the first.
	DefaultRetries = 3
	// FirstDelay and MaxDelay are the first and the longest delay between attempts. The delay doubles in between, and
	// is randomly shortened by up to half.
	FirstDelay = 500 * time.Millisecond
	MaxDelay   = 8 * time.Second
	// MaxRetryAfter is the longest accepted Retry-After. A longer one ends the call.
	MaxRetryAfter = 30 * time.Second
)

// Clock is the clock by which a client waits between attempts.
type Clock interface {
	Now() time.Time
	// Sleep waits for d, or until ctx ends, and then returns ctx.Err().
	Sleep(ctx context.Context, d time.Duration) error
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// unsent reports whether an error means that there was no connection to send the request on.
func unsent(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial"
}

// retryable reports whether another attempt may succeed, and cannot do anything twice.
func retryable(r request, err error) bool {
	var refused *Error
	var broken *ConnectionError
	var foreign *InvalidResponseError
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusTooManyRequests:
		return true // the service refused it before processing it
	case errors.As(err, &refused):
		inProgress := refused.Status == http.StatusConflict && refused.Code == apitypes.CodeIdempotencyInProgress
		passes := refused.Status == http.StatusRequestTimeout || refused.Status >= http.StatusInternalServerError
		return r.repeatable && (inProgress || passes)
	case errors.As(err, &broken):
		return (r.repeatable || broken.Unsent) && !untrusted(err)
	case errors.As(err, &foreign):
		return r.repeatable && !foreign.final
	default:
		return false
	}
}

// untrusted reports whether an error means that the certificate was not accepted.
func untrusted(err error) bool {
	var verification *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	return errors.As(err, &verification) || errors.As(err, &authority)
}

// delay returns the wait after attempt n, counted from 0, which failed with err. It is false if the service asked for a
// longer wait than MaxRetryAfter.
func (c *Client) delay(n int, err error) (time.Duration, bool) {
	var bits [8]byte
	if _, err := io.ReadFull(c.random, bits[:]); err != nil {
		return 0, false
	}
	longest := min(FirstDelay<<min(n, 16), MaxDelay)
	delay := longest - time.Duration(binary.BigEndian.Uint64(bits[:])%uint64(longest/2))
	if refused := (*Error)(nil); errors.As(err, &refused) {
		return max(delay, refused.RetryAfter), refused.RetryAfter <= MaxRetryAfter
	}
	return delay, true
}

// newIdempotencyKey returns a random UUID.
func (c *Client) newIdempotencyKey() (string, error) {
	var id [16]byte
	if _, err := io.ReadFull(c.random, id[:]); err != nil {
		return "", fmt.Errorf("client: generate an idempotency key: %w", err)
	}
	id[6] = id[6]&0x0f | 0x40 // version 4, RFC 9562
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]), nil
}
