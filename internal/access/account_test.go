package access_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// provider is the issuer of accounts.
const provider = "https://id.example"

// byProvider signs in by an account of the provider.
func (w *sessionWorld) byProvider(subject string) (access.Session, error) {
	w.t.Helper()
	token, err := w.SignInByProvider(w.t.Context(), provider, subject, w.at.Add(-time.Minute), access.Browser{})
	if err != nil {
		return access.Session{}, err
	}
	return w.find(token), nil
}

// member invites a person, and returns a session that is confirmed by mail.
func (w *sessionWorld) member(by person, email string) access.Session {
	w.t.Helper()
	_, token := w.invite(by, email, access.Finance)
	w.join(token)
	return w.find(w.mailed(email))
}

// TestAccount connects accounts of a provider, signs in by them, and removes them.
func TestAccount(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		w := newSessionWorld(t, store)
		ctx := t.Context()
		owner := w.person("acme", access.Admin)
		adds := func(why string, s access.Session, subject string, want error) {
			t.Helper()
			if err := w.AddAccount(ctx, s, access.Account{Issuer: provider, Subject: subject, Name: "Example"}); !errors.Is(err, want) || (err == nil) != (want == nil) {
				t.Errorf("%s: %v; want %v", why, err, want)
			}
		}
		_, token := w.invite(owner, "ada@example.com", access.Finance)
		unconfirmed := w.find(w.join(token))
		adds("by an invitation, which may have been passed on", unconfirmed, "1", access.ErrUnconfirmed)
		_, token = w.invite(w.person("globex", access.Admin), "ada@example.com", access.Finance)
		w.join(token)
		kept := w.mailed("ada@example.com")
		ada, bob := w.find(kept), w.member(owner, "bob@example.com")
		if _, err := w.byProvider("1"); !errors.Is(err, access.ErrAccount) {
			t.Errorf("an account of nobody: %v", err)
		}
		w.at = w.at.Add(access.ConfirmedFor)
		adds("no longer confirmed", ada, "1", access.ErrUnconfirmed)
		w.at = w.at.Add(-access.ConfirmedFor)
		adds("the first account", ada, "1", nil)
		adds("an account of somebody else", bob, "1", db.ErrConflict)
		adds("a second account", ada, "2", db.ErrConflict)
		if a, err := w.Accounts(ctx, ada); err != nil || len(a) != 1 || a[0].Subject != "1" || a[0].Name != "Example" || !a[0].ConnectedAt.Equal(w.at) || !a[0].UsedAt.IsZero() {
			t.Errorf("connected: %+v, %v", a, err)
		}
		s, err := w.byProvider("1")
		if err != nil || s.PersonID != ada.PersonID || !s.ConfirmedAt.Equal(w.at.Add(-time.Minute)) {
			t.Errorf("signed in: %+v, %v", s, err)
		}
		if a, err := w.Accounts(ctx, ada); err != nil || len(a) != 1 || !a[0].UsedAt.Equal(w.at) {
			t.Errorf("used: %+v, %v", a, err)
		}
		_, keyed := w.signIn(owner)
		if by := [4]string{keyed.BeganBy, unconfirmed.BeganBy, ada.BeganBy, s.BeganBy}; by != [4]string{access.ByKey, access.ByInvitation, access.ByLink, access.ByProvider} {
			t.Errorf("the sessions began by %v", by)
		}

		w.at = w.at.Add(access.ConfirmedFor)
		if _, err := w.RemoveAccount(ctx, ada); !errors.Is(err, access.ErrUnconfirmed) {
			t.Errorf("removed by a session that is no longer confirmed: %v", err)
		}
		w.at = w.at.Add(-access.ConfirmedFor)
		if a, err := w.RemoveAccount(ctx, ada); err != nil || a.Subject != "1" {
			t.Errorf("removed: %+v, %v", a, err)
		}
		if _, err := w.RemoveAccount(ctx, ada); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("removed again: %v", err)
		}
		if all, err := w.List(ctx, access.Principal{PersonID: ada.PersonID}, "", 9); err != nil || len(all) != 1 || all[0].ID != ada.ID {
			t.Errorf("after the removal there are the sessions %+v, %v", all, err)
		}
		if _, err := w.byProvider("1"); !errors.Is(err, access.ErrAccount) {
			t.Errorf("a removed account: %v", err)
		}
		for merchant, want := range map[string]int{"acme": 1, "globex": 1} { // of each merchant of the person
			for _, action := range []access.Action{access.ActionAccountAdd, access.ActionAccountRemove} {
				entries, err := access.NewReader(store).AuditEntries(ctx, access.AuditFilter{MerchantID: merchant, Action: action, Limit: 9})
				if err != nil || len(entries) != want || entries[0].Object != ada.PersonID || entries[0].Before+entries[0].After != `{"issuer":"https://id.example","subject":"1"}` || entries[0].Actor == "" {
					t.Errorf("%s of %s: %+v, %v", action, merchant, entries, err)
				}
			}
		}

		var both sync.WaitGroup
		var connected atomic.Int32
		for n := range 8 {
			both.Go(func() {
				if err := w.AddAccount(ctx, []access.Session{ada, bob}[n%2], access.Account{Issuer: provider, Subject: "1", Name: "Example"}); err == nil {
					connected.Add(1)
				} else if !errors.Is(err, db.ErrConflict) {
					t.Error(err)
				}
			})
		}
		both.Wait()
		if connected.Load() != 1 {
			t.Errorf("the account is connected %d times", connected.Load())
		}
	})
}

// TestAccountOfFormerPerson ends memberships of people with accounts: by a revocation, and with the key that invited.
func TestAccountOfFormerPerson(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		w := newSessionWorld(t, store)
		ctx := t.Context()
		owner := w.person("acme", access.Admin)
		temporary := owner
		var err error
		temporary.Record, _, err = w.keys.Create(ctx, access.Open(), access.KeyRequest{Name: "temp", MerchantID: "acme", Scopes: access.Admin, ExpiresAt: w.at.Add(time.Hour)})
		expect.OK(t, err)
		connect := func(s access.Session, subject string) access.Session {
			t.Helper()
			expect.OK(t, w.AddAccount(ctx, s, access.Account{Issuer: provider, Subject: subject, Name: "Example"}))
			return s
		}
		accounts := func() int {
			t.Helper()
			n, err := db.QueryRow(ctx, store, db.ScanCount, "SELECT count(*) FROM accounts")
			expect.OK(t, err)
			return n
		}
		ada := connect(w.member(owner, "ada@example.com"), "1")
		_, token := w.invite(w.person("globex", access.Admin), "ada@example.com", access.Finance)
		w.join(token)
		connect(w.member(temporary, "bob@example.com"), "2")
		connect(w.member(temporary, "eve@example.com"), "3")
		all, err := w.Memberships(ctx, ada)
		if err != nil || len(all) != 2 {
			t.Fatalf("%+v, %v", all, err)
		}
		for left, membership := range all {
			if _, err := w.keys.Revoke(ctx, access.Open(), membership.KeyID); err != nil || accounts() != 3-left {
				t.Errorf("after %d revocations there are %d accounts, %v", left+1, accounts(), err)
			}
		}
		w.at = w.at.Add(time.Hour)
		if _, err := w.byProvider("2"); !errors.Is(err, access.ErrAccount) || accounts() != 2 {
			t.Errorf("without a membership: %v", err)
		}
		if s := w.member(owner, "bob@example.com"); accounts() != 0 { // nor has eve, who has left
			t.Error("a person who is invited again has the account of before")
		} else if s = connect(s, "3"); accounts() != 1 {
			t.Errorf("there are %d accounts", accounts())
		} else if got, err := w.byProvider("3"); err != nil || got.PersonID != s.PersonID {
			t.Errorf("signed in: %+v, %v", got, err)
		}
		ended, err := access.NewReader(store).AuditEntries(ctx, access.AuditFilter{Action: access.ActionAccountRemove, Limit: 9})
		if err != nil || len(ended) != 3 {
			t.Errorf("the audit log has %d ended accounts, %v; want the 3", len(ended), err)
		}
		w.adds(w.find(w.mailed("bob@example.com")), newDevice(t))
		if s, err := w.byProvider("3"); err != nil || s.Confirmed(w.at) {
			t.Errorf("in place of a passkey: %+v, %v", s, err)
		}
	})
}
