package mailer_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/test/logtest"
)

// TestDirect sends mails that wait in memory, with the fake clock of synctest: a mail that waits for
// another attempt does not delay others, and one that the server refuses is not sent again.
func TestDirect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log logtest.Buffer
		var mu sync.Mutex
		start, attempts := time.Now(), make(map[string][]time.Duration)
		d := mailer.NewDirect(senderFunc(func(_ context.Context, _, recipient string, _ mailer.Message) error {
			mu.Lock()
			defer mu.Unlock()
			attempts[recipient] = append(attempts[recipient], time.Since(start))
			switch {
			case recipient == payer:
				return &mailer.RefusedError{Err: errors.New("no " + payer)}
			case recipient == "later@example.com" && time.Since(start) < time.Minute:
				return errors.New("try again")
			}
			return nil
		}), slog.New(slog.NewTextHandler(&log, nil)))
		send := func(recipient string) func(context.Context) error {
			return func(ctx context.Context) error { return d.Send(ctx, recipient, mailer.Message{}) }
		}
		for n := range mailer.MaxQueued + 1 {
			recipient := "later@example.com"
			switch n {
			case mailer.MaxQueued - 2:
				recipient = payer
			case mailer.MaxQueued - 1:
				recipient = "now@example.com"
			}
			if err := d.Queue(send(recipient)); errors.Is(err, mailer.ErrBusy) != (n == mailer.MaxQueued) || err != nil && n < mailer.MaxQueued {
				t.Errorf("mail %d: %v", n+1, err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { d.Run(ctx) })
		<-time.After(time.Hour)
		if got := attempts["now@example.com"]; len(got) != 1 || got[0] != 0 {
			t.Errorf("behind mails that wait, a mail is sent after %v", got)
		}
		if n := len(attempts[payer]); n != 1 || strings.Contains(log.String(), payer) {
			t.Errorf("a refused mail is sent %d times, and the log is\n%s", n, log.String())
		}
		if err := d.Queue(send("again@example.com")); err != nil {
			t.Errorf("after the others: %v", err)
		}
		cancel()
		running.Wait()
	})
}
