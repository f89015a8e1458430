package mailer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/quittance/quittance/internal/clock"
)

// Limits of mails that sign people in.
const (
	// MaxQueued bounds the mails that wait in memory.
	MaxQueued = 100
	// SendTimeout bounds a mail that somebody waits for.
	SendTimeout = 8 * time.Second
)

// retries are the pauses between the attempts to send a mail that waits.
var retries = []time.Duration{10 * time.Second, time.Minute}

// Direct sends mails that are useless later, such as links that sign in. They wait in memory and end with
// the process. It is safe for concurrent use.
type Direct struct {
	sender  Sender
	logger  *slog.Logger
	queue   chan func(context.Context) error
	waiting chan struct{} // has an element for each mail between Queue and its end
}

// NewDirect returns a Direct.
func NewDirect(sender Sender, logger *slog.Logger) *Direct {
	return &Direct{sender: sender, logger: logger, queue: make(chan func(context.Context) error, MaxQueued), waiting: make(chan struct{}, MaxQueued)}
}

// Send sends a mail within SendTimeout. The error may be a *RefusedError.
func (d *Direct) Send(ctx context.Context, recipient string, m Message) error {
	ctx, cancel := context.WithTimeout(ctx, SendTimeout)
	defer cancel()
	err := d.sender.Send(ctx, rand.Text(), recipient, m)
	switch refused := (*RefusedError)(nil); {
	case errors.As(err, &refused):
		return &RefusedError{withoutAddresses(refused.Err)}
	case err != nil:
		return fmt.Errorf("send a mail: %w", withoutAddresses(err))
	}
	return nil
}

// Queue has Run call send, again after a pause if it fails, unless the server refuses the mail. The error
// is ErrBusy.
func (d *Direct) Queue(send func(ctx context.Context) error) error {
	select {
	case d.waiting <- struct{}{}:
		d.queue <- send // has room for all that wait
		return nil
	default:
		return ErrBusy
	}
}

// Run sends queued mails until ctx ends. A mail that waits for another attempt does not delay others.
func (d *Direct) Run(ctx context.Context) {
	var mails sync.WaitGroup
	defer mails.Wait()
	inFlight := semaphore.NewWeighted(MaxInFlight)
	for {
		select {
		case send := <-d.queue:
			mails.Go(func() {
				d.attempt(ctx, inFlight, send)
				<-d.waiting
			})
		case <-ctx.Done():
			return
		}
	}
}

// attempt calls send until it succeeds, the server refuses the mail, all retries are over or ctx ends.
func (d *Direct) attempt(ctx context.Context, inFlight *semaphore.Weighted, send func(context.Context) error) {
	for n := 0; ; n++ {
		if inFlight.Acquire(ctx, 1) != nil { // ctx has ended
			return
		}
		err := send(ctx)
		inFlight.Release(1)
		if err == nil {
			return
		}
		if n == len(retries) || errors.As(err, new(*RefusedError)) {
			d.logger.ErrorContext(ctx, "e-mail that signs in failed, given up", "err", err)
			return
		}
		d.logger.WarnContext(ctx, "e-mail that signs in failed, will retry", "err", err)
		if !clock.Sleep(ctx, retries[n], nil) {
			return
		}
	}
}

// Address returns an e-mail address in lower case. The error is ErrAddress.
func Address(text string) (string, error) {
	if !validAddress(text) {
		return "", ErrAddress
	}
	return strings.ToLower(text), nil
}
