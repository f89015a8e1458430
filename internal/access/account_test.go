package access_test

import (
	"errors"
	"fmt"
	"strings"
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
		if all, _, err := w.List(ctx, access.Principal{PersonID: ada.PersonID}, 9); err != nil || len(all) != 1 || all[0].ID != ada.ID {
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
		for _, s := range []access.Session{{}, ada} { // by mail, which may have another reader by now
			if _, _, err := w.Accept(ctx, s, token, access.Browser{}); !errors.Is(err, access.ErrUnproven) {
				t.Errorf("joined without the account: %v", err)
			}
		}
		byAccount, err := w.byProvider("1")
		expect.OK(t, err)
		if _, _, err := w.Accept(ctx, byAccount, token, access.Browser{}); err != nil {
			t.Errorf("joined with the account: %v", err)
		}
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

// invite invites a person by a key, and returns the token of the mail.
func (w *sessionWorld) invite(by person, email string, scopes access.Scopes) (i access.Invitation, token string) {
	w.t.Helper()
	i, token, err := w.Invite(w.t.Context(), by.Principal(), access.Invitation{Email: email, Name: "Ada", MerchantID: by.MerchantID, Scopes: scopes})
	expect.OK(w.t, err)
	return i, token
}

// join accepts an invitation, and returns the session.
func (w *sessionWorld) join(token string) (session string) {
	w.t.Helper()
	_, session, err := w.Accept(w.t.Context(), access.Session{}, token, access.Browser{})
	expect.OK(w.t, err)
	return session
}

// mailed signs a person in by a mailed link, and returns the session.
func (w *sessionWorld) mailed(email string) (session string) {
	w.t.Helper()
	link, err := w.MailLink(w.t.Context(), email)
	expect.OK(w.t, err)
	if session, err = w.OpenLink(w.t.Context(), link.Token, access.Browser{}); err != nil {
		w.t.Fatal(err)
	}
	return session
}

// wantRefused fails the test unless an invitation cannot be accepted.
func (w *sessionWorld) wantRefused(token, why string, want error) {
	w.t.Helper()
	if _, session, err := w.Accept(w.t.Context(), access.Session{}, token, access.Browser{}); !errors.Is(err, want) || session != "" {
		w.t.Errorf("%s: %q, %v; want %v", why, session, err, want)
	}
}

// TestInvitation accepts invitations once, in time, and as long as who invites has a key.
func TestInvitation(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		w := newSessionWorld(t, store)
		ctx := t.Context()
		owner := w.person("acme", access.Admin)
		_, token := w.invite(owner, "Ada@Example.com", access.Finance)
		var accepted sync.WaitGroup
		sessions, errs := make([]string, 8), make([]error, 8)
		for n := range sessions {
			accepted.Go(func() { _, sessions[n], errs[n] = w.Accept(ctx, access.Session{}, token, access.Browser{}) })
		}
		accepted.Wait()
		session := strings.Join(sessions, "")
		s, p, err := w.Find(ctx, session)
		if err != nil || p.Scopes != access.Finance || p.MerchantID != "acme" || p.PersonID == "" || s.PersonID != p.PersonID || p.Name != "Ada" || s.Confirmed(w.at) {
			t.Fatalf("the session %q is %+v, %+v, %v", session, s, p, err)
		}
		for n, err := range errs {
			if sessions[n] == "" && !errors.Is(err, access.ErrLink) {
				t.Errorf("accepted again: %v", err)
			}
		}
		w.wantRefused(token, "used", access.ErrLink)
		if ada, err := w.PersonOf(ctx, s); err != nil || ada.Email != "ada@example.com" {
			t.Errorf("the person is %+v, %v", ada, err)
		}

		first, former := w.invite(owner, "bob@example.com", access.Read)
		_, token = w.invite(owner, "bob@example.com", access.Support)
		w.wantRefused(former, "replaced", access.ErrLink)
		if entries, err := access.NewReader(store).AuditEntries(ctx, access.AuditFilter{MerchantID: "acme", Action: access.ActionUninvite, Limit: 9}); err != nil || len(entries) != 1 || entries[0].Object != first.ID {
			t.Errorf("the audit log of a replaced invitation is %+v, %v", entries, err)
		}
		w.at = first.ExpiresAt.Add(-time.Second)
		if _, err := w.Invitation(ctx, token); err != nil {
			t.Errorf("a second before its end: %v", err)
		}
		w.at = first.ExpiresAt
		w.wantRefused(token, "expired", access.ErrLink)

		withdrawn, token := w.invite(owner, "bob@example.com", access.Read)
		if err := w.Uninvite(ctx, w.person("globex", access.Admin).Principal(), "acme", withdrawn.ID); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("withdrawn by another merchant: %v", err)
		}
		expect.OK(t, w.Uninvite(ctx, owner.Principal(), "acme", withdrawn.ID))
		w.wantRefused(token, "withdrawn", access.ErrLink)

		for _, by := range []person{w.person("acme", access.NewScopes(access.KeysWrite, access.InvoicesRead)), owner} {
			_, token = w.invite(by, "ada@example.com", access.NewScopes(access.InvoicesRead))
			if by.ID != owner.ID {
				w.wantRefused(token, "in place of a membership that the inviter cannot give", access.ErrMayNotReplace)
			} else if w.join(token) == "" {
				t.Error("a person without another membership is not signed in")
			}
		}
		if _, _, err := w.Invite(ctx, access.Open(), access.Invitation{Email: "e@example.com", Name: "E", MerchantID: gone, Scopes: access.Read}); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("an invitation to no merchant: %v", err)
		}

		_, token = w.invite(owner, "bob@example.com", access.Read)
		expect.Success(t)(w.keys.Revoke(ctx, access.Open(), owner.ID))
		w.wantRefused(token, "of a key that was revoked", access.ErrLink)
		_, _, err = w.Invite(ctx, w.person("acme", access.Finance).Principal(), access.Invitation{Email: "e@example.com", Name: "E", Scopes: access.Read})
		if scope := (*access.ScopeError)(nil); !errors.As(err, &scope) {
			t.Errorf("an invitation without keys:write: %v", err)
		}
		expect.OK(t, w.Clean(ctx, w.at.Add(access.InvitationLifetime)))
		if open, err := w.Invitations(ctx, access.Open(), "acme"); err != nil || len(open) > 0 {
			t.Errorf("after the clean-up there are %+v, %v", open, err)
		}
	})
}

// TestMemberships switches among a person's merchants, and ends memberships.
func TestMemberships(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		w := newSessionWorld(t, store)
		ctx := t.Context()
		acme, globex := w.person("acme", access.Admin), w.person("globex", access.Admin)
		_, token := w.invite(acme, "ada@example.com", access.Finance)
		session := w.join(token)
		for _, scopes := range []access.Scopes{access.Finance, access.Support} {
			_, token = w.invite(globex, "ada@example.com", scopes)
			if w.join(token) != "" {
				t.Error("an invitation of one merchant signs in the person of another")
			}
		}
		s, p, err := w.Find(ctx, session)
		if err != nil || p.MerchantID != "acme" {
			t.Fatalf("%+v, %v", p, err)
		}
		other, err := w.As(ctx, s, "globex")
		if err != nil || other.MerchantID != "globex" || other.Scopes != access.Support || other.IsLetInBy(s.KeyID) {
			t.Errorf("at globex the person is %+v, %v", other, err)
		}
		if _, err := w.As(ctx, s, "initech"); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("at a merchant of others: %v", err)
		}
		link, err := w.MailLink(ctx, "ada@example.com")
		expect.OK(t, err)
		mailed, err := w.OpenLink(ctx, link.Token, access.Browser{})
		if err != nil || w.find(mailed).PersonID != s.PersonID {
			t.Errorf("by a mailed link: %v", err)
		}
		if _, err := w.OpenLink(ctx, link.Token, access.Browser{}); !errors.Is(err, access.ErrLink) {
			t.Errorf("by a used link: %v", err)
		}
		for name, err := range map[string]error{
			"a link of a key":   second2(w.MakeLink(ctx, globex.Principal(), other.KeyID)),
			"an own link":       second2(w.MakeLink(ctx, other, other.KeyID)),
			"a rotation":        third(w.keys.Rotate(ctx, access.Open(), other.KeyID, 0)),
			"an unknown reader": second2(w.MailLink(ctx, "eve@example.com")),
		} {
			if want := map[bool]error{true: db.ErrNotFound, false: access.ErrPersonal}[name == "an unknown reader"]; !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
		}
		keyed, _ := w.signIn(acme) // sees no memberships
		if all, err := w.Memberships(ctx, w.find(keyed)); err != nil || all != nil {
			t.Errorf("a key has the memberships %+v, %v", all, err)
		}
		if list, _, err := w.List(ctx, other, 99); err != nil || len(list) != 2 {
			t.Errorf("the person has %d sessions, %v", len(list), err)
		}
		if err := w.End(ctx, other, w.find(mailed).ID); err != nil {
			t.Errorf("end of an own session of another merchant: %v", err)
		}
		expect.Success(t)(w.keys.Revoke(ctx, access.Open(), other.KeyID))
		if _, err := w.As(ctx, s, "globex"); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("after the membership ended: %v", err)
		}
		_, token = w.invite(acme, "ada@example.com", access.Finance)
		_, atGlobex := w.invite(globex, "ada@example.com", access.Finance)
		expect.Success(t)(w.keys.Revoke(ctx, access.Open(), s.KeyID))
		w.wantRefused(token, "after the person was removed", access.ErrLink)
		if _, err := w.Invitation(ctx, atGlobex); err != nil {
			t.Errorf("an invitation of another merchant: %v", err)
		}
		w.wantSignedOut(session, "after its membership ended")
		if _, err := w.MailLink(ctx, "ada@example.com"); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("a link without a membership: %v", err)
		}
	})
}

// TestMembershipsAreSeparate makes a key and an invitation for one merchant in a session that began at another. They do
// not end with the membership of that one.
func TestMembershipsAreSeparate(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		w, ctx := newSessionWorld(t, store), t.Context()
		_, token := w.invite(w.limited("acme", access.Admin), "carol@example.com", access.Finance) // which makes the membership expire
		session := w.join(token)
		_, token = w.invite(w.person("globex", access.Admin), "carol@example.com", access.Admin)
		w.join(token)
		s := w.find(session)
		carol, err := w.As(ctx, s, "globex")
		expect.OK(t, err)
		for range 2 {
			w.signIn(w.person("globex", access.Admin))
		}
		if all, more, err := w.List(ctx, carol, 1); err != nil || !more || len(all) != 2 || all[0].ID != s.ID {
			t.Errorf("at globex carol sees %+v, %v, %v", all, more, err)
		}
		made, _, err := w.keys.Create(ctx, carol, access.KeyRequest{Name: "shop", Scopes: access.Standard})
		if err != nil || !made.ExpiresAt.IsZero() {
			t.Errorf("the key expires at %v, %v", made.ExpiresAt, err)
		}
		_, token, err = w.Invite(ctx, carol, access.Invitation{Email: "eve@example.com", Name: "Eve", Scopes: access.Read})
		expect.OK(t, err)
		expect.Success(t)(w.keys.Revoke(ctx, access.Open(), s.KeyID))
		w.wantSignedOut(session, "after its membership ended")
		if w.join(token) == "" {
			t.Error("the invitation ended with another merchant's membership")
		}
	})
}

func second2(_ access.Link, err error) error               { return err }
func third(_ access.Record, _ access.Key, err error) error { return err }

// TestLimitsOfPeople reaches the limits of invitations and of memberships.
func TestLimitsOfPeople(t *testing.T) {
	t.Parallel()
	w := newSessionWorld(t, dbtest.Open(t, dbtest.Migrated(t)))
	operator := w.person("", access.Admin).Principal()
	for n := range access.MaxMemberships + 1 {
		i, token, err := w.Invite(t.Context(), operator, access.Invitation{Email: "ada@example.com", Name: "Ada", MerchantID: fmt.Sprint("m", n), Scopes: access.Read})
		if err != nil {
			t.Fatal(i, err)
		}
		if n == access.MaxMemberships {
			w.wantRefused(token, "one more membership", access.ErrTooManyMemberships)
		} else {
			w.join(token)
		}
	}
	for n := range access.MaxInvitations + 1 {
		_, _, err := w.Invite(t.Context(), operator, access.Invitation{Email: fmt.Sprintf("p%d@example.com", n), Name: "P", MerchantID: "acme", Scopes: access.Read})
		if (err != nil) != (n == access.MaxInvitations) || err != nil && !errors.Is(err, access.ErrTooManyInvitations) {
			t.Errorf("invitation %d: %v", n+1, err)
		}
	}
	if _, _, err := w.Invite(t.Context(), operator, access.Invitation{Email: "p0@example.com", Name: "P", MerchantID: "acme", Scopes: access.Read}); err != nil {
		t.Errorf("a repeated invitation: %v", err)
	}
}
