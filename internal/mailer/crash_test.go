package mailer_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/mail"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// Environment variables of a child process: its database, the port of its server, and how
// many seconds its clock is ahead.
const (
	childEnv      = "QUITTANCE_TEST_MAILER_DATABASE"
	childPortEnv  = "QUITTANCE_TEST_MAILER_PORT"
	childAheadEnv = "QUITTANCE_TEST_MAILER_AHEAD"
)

// child runs a mailer that tests kill.
func child() int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	port, err := strconv.Atoi(os.Getenv(childPortEnv))
	if err != nil {
		return fail(err)
	}
	ahead, err := strconv.Atoi(os.Getenv(childAheadEnv))
	if err != nil {
		return fail(err)
	}
	s, err := db.Open(context.Background(), os.Getenv(childEnv))
	if err != nil {
		return fail(err)
	}
	now := func() time.Time { return time.Now().Add(time.Duration(ahead) * time.Second) }
	mailer.New(mailer.Config{
		Store: mailer.NewTables(s), Compose: compose, Now: now, Schedule: now, Random: func() float64 { return 0.5 }, Token: token, Logger: slog.New(slog.DiscardHandler),
		Sender: &mailer.SMTP{Host: "127.0.0.1", Port: port, Encryption: mailer.NoTLS, From: mail.Address{Address: "receipts@pay.example"}, Now: now},
	}).Run(context.Background())
	return 1
}

// startChild starts a mailer in its own process.
func startChild(t *testing.T, database string, server *smtpServer, ahead time.Duration) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childEnv+"="+database, childPortEnv+"="+strconv.Itoa(server.port), childAheadEnv+"="+strconv.Itoa(int(ahead/time.Second)))
	cmd.Stderr = os.Stderr
	expect.OK(t, cmd.Start())
	return cmd
}

// TestKilledMailer kills a mailer before and after the server has taken its mail. A mail that was not taken is sent
// once its lease has ended. A mail that was taken, without the process learning of it, is sent again under the same id.
func TestKilledMailer(t *testing.T) {
	t.Parallel()
	for name, database := range dbtest.MigratedDatabases() {
		for stage, copies := range map[string]int{"RCPT": 1, "END": 2} {
			t.Run(name+" "+stage, func(t *testing.T) {
				t.Parallel()
				url := database(t)
				s := dbtest.Open(t, url)
				addInvoices(t, s, "inv_1")
				queued := mailer.New(mailer.Config{
					Store: mailer.NewTables(s), Compose: compose, Sender: senderFunc(nil), Now: time.Now, Schedule: time.Now, Random: func() float64 { return 0.5 }, Token: token, Logger: slog.New(slog.DiscardHandler),
				})
				expect.OK(t, queued.Queue(t.Context(), "inv_1", "en", payer))
				reached, taken := make(chan struct{}, 1), make(chan struct{}, 1)
				hung := startSMTP(t, func(s *smtpServer) { s.config, s.hang, s.reached = nil, stage, reached })
				first := startChild(t, url, hung, 0)
				<-reached
				expect.OK(t, first.Process.Kill())
				if err := first.Wait(); err == nil {
					t.Fatal("the child ended by itself")
				}
				healthy := startSMTP(t, func(s *smtpServer) {
					s.config = nil
					s.taken = func(received) { taken <- struct{}{} }
				})
				second := startChild(t, url, healthy, 3*time.Minute) // after the lease
				<-taken
				expect.OK(t, second.Process.Kill())
				_ = second.Wait()
				all := append(hung.all(), healthy.all()...)
				if len(all) != copies {
					t.Fatalf("%d mails were taken, want %d", len(all), copies)
				}
				for _, mail := range all {
					if id := mail.header(t).Get("Message-Id"); id != "<inv_1.1@pay.example>" || mail.to != "TO:<"+payer+">" {
						t.Errorf("mail %s to %s", id, mail.to)
					}
				}
			})
		}
	}
}
