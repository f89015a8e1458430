package access_test

import (
	"errors"
	"testing"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestMemberOfAMerchantThatLeft invites people with passkeys after a merchant left. Ada, who was a member only there, cannot
// sign in to prove who she is: she joins as a new person, and has no more what a former reader of her mail may have. Bob
// is a member of another merchant, too.
func TestMemberOfAMerchantThatLeft(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		w := newSessionWorld(t, store)
		ctx := t.Context()
		shop, globex := w.person("shop", access.Admin), w.person("globex", access.Admin)
		ada, phone := w.member(shop, "ada@example.com"), newDevice(t)
		w.adds(ada, phone)
		expect.OK(t, w.AddAccount(ctx, ada, access.Account{Issuer: provider, Subject: "1", Name: "Example"}))
		w.member(shop, "bob@example.com")
		bob := w.member(w.person("acme", access.Admin), "bob@example.com")
		w.adds(bob, newDevice(t))
		_, atShop := w.invite(shop, "ada@example.com", access.Support)
		_, forAda := w.invite(globex, "ada@example.com", access.Finance)
		_, forBob := w.invite(globex, "bob@example.com", access.Finance)

		w.left = "shop"
		w.wantRefused(forBob, "by the mail of a person who can sign in with a passkey", access.ErrUnproven)
		joined := w.find(w.join(forAda))
		if joined.MerchantID != "globex" || joined.PersonID != ada.PersonID || joined.Confirmed(w.at) {
			t.Errorf("joined in the session %+v", joined)
		}
		w.left = "" // the merchant comes back
		options, token := w.begin(access.ToSignIn, access.Session{})
		if _, err := w.SignInByPasskey(ctx, token, phone.use(t, options), access.Browser{}); !errors.Is(err, access.ErrPasskey) {
			t.Errorf("signed in by a passkey of before: %v", err)
		}
		if _, err := w.byProvider("1"); !errors.Is(err, access.ErrAccount) {
			t.Errorf("signed in by an account of before: %v", err)
		}
		w.wantRefused(atShop, "an invitation of before", access.ErrLink)
		for _, person := range []struct {
			session               access.Session
			memberships, passkeys int
		}{{joined, 1, 0}, {bob, 2, 1}} {
			all, err := w.Memberships(ctx, person.session)
			keys, keysErr := w.Passkeys(ctx, person.session)
			if err != nil || keysErr != nil || len(all) != person.memberships || len(keys) != person.passkeys {
				t.Errorf("%+v, %v and %d passkeys, %v; want %+v", all, err, len(keys), keysErr, person)
			}
		}
		ended, err := access.NewReader(store).AuditEntries(ctx, access.AuditFilter{MerchantID: "shop", Action: access.ActionKeyRevoke, Limit: 9})
		if err != nil || len(ended) != 1 || ended[0].Object != ada.KeyID {
			t.Errorf("the audit log has the ended memberships %+v, %v", ended, err)
		}
	})
}
