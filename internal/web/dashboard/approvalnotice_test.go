package dashboard

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// outbox is an SMTP server that answers with err.
type outbox struct {
	err   error
	sent  []noticed
	tried int
}

// noticed is a mail.
type noticed struct {
	recipient string
	mailer.Message
}

func (o *outbox) Send(_ context.Context, _, recipient string, m mailer.Message) error {
	o.tried++
	if o.err == nil {
		o.sent = append(o.sent, noticed{recipient, m})
	}
	return o.err
}

// notified is a service that mails Ada about requests of five merchants.
type notified struct {
	*Dashboard
	*outbox
	t  *testing.T
	at time.Time
}

func newNotified(t *testing.T) *notified {
	w := &notified{t: t, at: time.Unix(1_000_000, 0), outbox: new(outbox)}
	now, store, logger := func() time.Time { return w.at }, dbtest.Open(t, dbtest.Migrated(t)), slog.New(slog.DiscardHandler)
	sessions := access.NewSessions(access.SessionConfig{Store: store, Now: now, Rand: rand.Reader, Authenticator: access.NewAuthenticator(access.AuthenticatorConfig{
		Store: access.NewTables(store), Mode: access.Live, Now: now, Logger: logger,
	})})
	w.Dashboard = &Dashboard{cfg: Config{Sessions: sessions, Mail: mailer.NewDirect(w, logger), URL: "http://office.example", Now: now, Logger: logger}, mails: newMailLimits(now)}
	keys := access.NewKeyManager(access.KeyManagerConfig{Store: store, Mode: access.Live, Known: func(string) bool { return true }, Now: now, Rand: rand.Reader})
	operator, _, err := keys.Create(t.Context(), access.Open(), access.KeyRequest{Name: "operator", Scopes: access.Admin})
	expect.OK(t, err)
	for _, merchant := range merchants {
		for _, email := range []string{"ada@example.com", "bob@" + merchant + ".example"} {
			_, token, err := sessions.Invite(t.Context(), operator.Principal(), access.Invitation{Email: email, Name: "Ada", MerchantID: merchant, Scopes: access.Finance})
			if err == nil {
				_, _, err = sessions.Accept(t.Context(), access.Session{}, token, access.Browser{})
			}
			expect.OK(t, err)
		}
		expect.OK(t, sessions.SetApprovalPolicy(t.Context(), access.Open(), merchant, access.ApprovalPolicy{People: 2}))
	}
	return w
}

var merchants = []string{"acme", "cafe", "dune", "echo", "foxy"}

// ask makes a request for approval.
func (w *notified) ask(merchant string, amount uint64) {
	w.t.Helper()
	by := access.Principal{KeyID: fmt.Sprint("key_", merchant, amount), MerchantID: merchant}
	err := w.cfg.Sessions.RequestApproval(w.t.Context(), &access.ApprovalRequiredError{GuardedAction: access.GuardedAction{By: by, Kind: access.OfRefund, Subject: map[string]uint64{"amount": amount}, Amount: invoice.NewAmount(amount)}})
	if required := (*access.ApprovalRequiredError)(nil); !errors.As(err, &required) {
		w.t.Fatal(err)
	}
}

// notify tries all mails that are due after a time, and returns how many.
func (w *notified) notify(after time.Duration) (tried int) {
	w.t.Helper()
	w.at = w.at.Add(after)
	for {
		err := w.notifyApprover(w.t.Context())
		if errors.Is(err, db.ErrNotFound) {
			return tried
		}
		expect.OK(w.t, err)
		tried++
	}
}

// TestNotifyApprover: a mail that fails is sent later, one that is refused is not. Mails of several merchants to one person,
// and those beyond the limit of a day, are delayed.
func TestNotifyApprover(t *testing.T) {
	t.Parallel()
	w := newNotified(t)
	const pause = access.ApprovalNoticePause
	w.ask("acme", 1)
	w.Run(t.Context()) // serves pages, also of a replica that has stopped its work, and so mails nobody
	w.err = errors.New("out of order")
	if first, soon, later := w.notify(0), w.notify(pause-time.Second), w.notify(time.Second); first != 2 || soon != 0 || later != 2 {
		t.Errorf("during an outage %d, %d and %d mails were tried", first, soon, later)
	}
	w.err = nil
	if w.notify(pause); len(w.sent) != 2 || !strings.Contains(w.sent[0].Text, "/dashboard/approvals/apr_") {
		t.Errorf("after an outage the mails are %+v", w.sent)
	}
	w.ask("acme", 2)
	w.err = &mailer.RefusedError{Err: errors.New("no such mailbox")}
	if refused, again := w.notify(pause), w.notify(pause); refused != 2 || again != 0 {
		t.Errorf("%d mails were refused, and %d tried again", refused, again)
	}

	w.err, w.sent = nil, nil
	for _, merchant := range merchants {
		w.ask(merchant, 3)
	}
	var got []string
	for range merchants {
		w.notify(pause)
	}
	for _, m := range w.sent {
		got = append(got, strings.Fields(m.Subject)[0])
	}
	slices.Sort(got)
	if want := slices.Sorted(slices.Values(append(merchants, merchants...))); !slices.Equal(got, want) {
		t.Errorf("mails about five merchants are %v, want %v", got, want)
	}

	w.at, w.sent = w.at.Add(MailDay), nil
	const requests = MailsOfPersonADay + 6
	for n := range uint64(requests) {
		w.ask("acme", 4+n)
		w.notify(pause)
	}
	before := w.toAda()
	w.ask("foxy", 4)
	w.notify(pause)
	if w.notify(pause); w.toAda() == before {
		t.Error("another merchant's requests take all mails")
	}
	early := w.toAda()
	for range merchants {
		w.notify(2 * time.Hour)
	}
	if left := w.notify(2 * time.Hour); early < MailsOfPersonADay || early >= requests || w.toAda() == early || left != 0 {
		t.Errorf("%d of %d mails were sent within hours, %d later, and %d are left", early, requests, w.toAda()-early, left)
	}
}

// TestNotifyApproverOfAServerThatAnswers compares a server that refuses mails with an outage. Its answers use up the
// limit of a day, also if they repeat the address.
func TestNotifyApproverOfAServerThatAnswers(t *testing.T) {
	t.Parallel()
	const people, attempts = 2, int(MailDay / access.ApprovalNoticePause)
	day := func(w *notified, err error) int {
		w.err, w.tried = err, 0
		for range attempts {
			w.notify(access.ApprovalNoticePause)
		}
		return w.tried
	}
	w := newNotified(t)
	w.ask("acme", 1)
	if n := day(w, errors.New("out of order")); n != people*attempts {
		t.Errorf("an outage: %d attempts of %d", n, people*attempts)
	}
	answer := fmt.Errorf("send: %w", &mailer.AnswerError{Text: "554 5.7.1 <ADA@example.com>: Recipient address rejected"})
	if n := day(w, answer); n < people*MailsOfPersonADay || n > 2*people*MailsOfPersonADay { // a burst, and what comes back
		t.Errorf("refusals: %d attempts", n)
	}
	if n := day(w, answer); n > people*(MailsOfPersonADay+1) {
		t.Errorf("refusals on the next day: %d attempts", n)
	}
}

// toAda counts the mails to Ada.
func (w *notified) toAda() (n int) {
	for _, m := range w.sent {
		if m.recipient == "ada@example.com" {
			n++
		}
	}
	return n
}

// TestInviteWithoutMail carries out an invitation that was approved before the operator removed SMTP. It stays approved.
func TestInviteWithoutMail(t *testing.T) {
	t.Parallel()
	w := newNotified(t)
	w.cfg.Mail = nil
	v := &visit{principal: access.Principal{KeyID: "key_1", MerchantID: "acme", Scopes: access.Admin}, merchant: "acme", text: texts().English()}
	r := httptest.NewRequestWithContext(context.WithValue(t.Context(), visitKey{}, v), http.MethodPost, "/dashboard/approvals/apr_1/use", nil)
	err := w.invite(httptest.NewRecorder(), r, keyForm{For: forPerson, Name: "Eve", Email: "eve@example.com", Role: "finance"})
	open, listed := w.cfg.Sessions.Invitations(t.Context(), v.principal, "acme")
	if !errors.Is(err, errNotFound) || listed != nil || len(open) != 0 {
		t.Errorf("without SMTP: %v, and %d invitations are open, %v", err, len(open), listed)
	}
}
