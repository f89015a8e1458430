package access_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// board is a merchant of which people approve actions.
type board struct {
	*sessionWorld
	merchant string
	owner    person // a key
	operator person // a key
}

func (w *sessionWorld) board(merchant string) *board {
	return &board{w, merchant, w.person(merchant, access.Admin), w.person("", access.Admin)}
}

// join makes a person a member by the operator, and returns a confirmed session of the person.
func (b *board) join(name string, scopes access.Scopes) (access.Session, access.Principal) {
	b.t.Helper()
	email := name + "@" + b.merchant + ".example"
	_, token, err := b.Invite(b.t.Context(), b.operator.Principal(), access.Invitation{Email: email, Name: name, MerchantID: b.merchant, Scopes: scopes})
	if err != nil {
		b.t.Fatal(err)
	}
	if _, _, err := b.Accept(b.t.Context(), access.Session{}, token, access.Browser{}); err != nil {
		b.t.Fatal(err)
	}
	return b.confirmed(name)
}

// confirmed signs a member in.
func (b *board) confirmed(name string) (access.Session, access.Principal) {
	b.t.Helper()
	s, p, err := b.Find(b.t.Context(), b.mailed(name+"@"+b.merchant+".example"))
	if err != nil {
		b.t.Fatal(err)
	}
	return s, p
}

// want sets the policy as the operator.
func (b *board) want(p access.ApprovalPolicy) {
	b.t.Helper()
	if err := b.SetApprovalPolicy(b.t.Context(), access.Open(), b.merchant, p); err != nil {
		b.t.Fatal(err)
	}
}

// refund returns a guarded refund by the owner's key.
func (b *board) refund(amount uint64) access.GuardedAction {
	return access.GuardedAction{By: b.owner.Principal(), Kind: access.OfRefund, Subject: map[string]uint64{"amount": amount}, Amount: invoice.NewAmount(amount)}
}

// do makes a guarded action.
func (b *board) do(a access.GuardedAction) error {
	return b.store.Update(b.t.Context(), func(tx *db.Tx) error {
		used, err := access.WantApproval(b.t.Context(), tx, b.at, a)
		if err != nil {
			return err
		}
		return access.AppendAudit(b.t.Context(), tx, used...)
	})
}

// ask makes the request for approval of an action.
func (b *board) ask(a access.GuardedAction) access.Approval {
	b.t.Helper()
	made, err := b.request(a)
	if err != nil {
		b.t.Fatal(err)
	}
	return made
}

// request asks for approvals of an action that is refused.
func (b *board) request(a access.GuardedAction) (access.Approval, error) {
	err := b.RequestApproval(b.t.Context(), &access.ApprovalRequiredError{GuardedAction: a})
	if required := (*access.ApprovalRequiredError)(nil); errors.As(err, &required) {
		return required.Request, nil
	}
	return access.Approval{}, err
}

// wantState fails the test unless a request has a state.
func (b *board) wantState(id string, want access.ApprovalState) {
	b.t.Helper()
	if a, err := access.NewReader(b.store).Approval(b.t.Context(), id, b.at); err != nil || a.State != want {
		b.t.Errorf("the request is %s, %v; want %s", a.State, err, want)
	}
}

// isGuarded reports whether an error means that approvals are missing.
func isGuarded(err error) bool { return errors.As(err, new(*access.ApprovalRequiredError)) }

// TestApprovals asks for approvals, votes, and uses them.
func TestApprovals(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		w := newSessionWorld(t, store)
		b, ctx := w.board("acme"), t.Context()
		ada, asAda := b.join("ada", access.Admin)
		bob, asBob := b.join("bob", access.Finance)
		dev, asDev := b.join("dev", access.Developer)
		_, open := b.invite(b.owner, "early@example.com", access.Finance)
		if err := b.do(b.refund(1_000)); err != nil {
			t.Errorf("without a policy: %v", err)
		}
		for _, people := range []int{1, 3, 11, -1} {
			err := b.SetApprovalPolicy(ctx, b.owner.Principal(), "acme", access.ApprovalPolicy{People: people, RefundsAbove: invoice.NewAmount(100)})
			if field := (*invoice.FieldError)(nil); !errors.As(err, &field) || field.Field != "people" {
				t.Errorf("a policy of %d people, of 2 who may approve: %v", people, err)
			}
		}
		policy := access.ApprovalPolicy{People: 2, RefundsAbove: invoice.NewAmount(100)}
		if err := b.SetApprovalPolicy(ctx, b.owner.Principal(), "acme", policy); err != nil {
			t.Fatal(err)
		}
		w.wantRefused(open, "an invitation from before the policy", access.ErrLink)

		if err := b.do(b.refund(100)); err != nil {
			t.Errorf("a refund of the limit: %v", err)
		}
		large := b.refund(101)
		if err := b.do(large); !isGuarded(err) {
			t.Errorf("a refund above the limit: %v", err)
		}
		if err := b.do(access.GuardedAction{By: access.Open(), Kind: large.Kind, Subject: large.Subject, Amount: large.Amount}); err != nil {
			t.Errorf("by the operator: %v", err)
		}
		if err := b.do(access.GuardedAction{Kind: large.Kind, Subject: large.Subject, Amount: large.Amount}); err == nil || isGuarded(err) {
			t.Errorf("without a principal: %v", err)
		}
		asked := b.ask(large)
		if again := b.ask(large); again.ID != asked.ID {
			t.Errorf("the request was made twice: %v, %v", asked, again)
		}
		for why, vote := range map[string]func() error{
			"a role that may not": func() error { return b.Vote(ctx, dev, asDev, asked.ID, true) },
			"a key":               func() error { _, s := b.signIn(b.owner); return b.Vote(ctx, s, b.owner.Principal(), asked.ID, true) },
			"the operator":        func() error { return b.Vote(ctx, ada, access.Open(), asked.ID, true) },
			"another's principal": func() error { return b.Vote(ctx, ada, asBob, asked.ID, true) },
		} {
			if err := vote(); !errors.Is(err, access.ErrMayNotApprove) {
				t.Errorf("a vote of %s: %v", why, err)
			}
		}
		other := w.board("globex")
		if s, p := other.join("gil", access.Admin); !errors.Is(b.Vote(ctx, s, p, asked.ID, true), db.ErrNotFound) && !errors.Is(b.Vote(ctx, s, p, asked.ID, true), access.ErrApprovalEnded) {
			t.Error("a vote of another merchant's owner was accepted")
		}
		for range 3 {
			if err := b.Vote(ctx, ada, asAda, asked.ID, true); err != nil {
				t.Fatal(err)
			}
		}
		b.wantState(asked.ID, access.ApprovalRequested)
		if err := b.do(large); !isGuarded(err) {
			t.Errorf("with one approval: %v", err)
		}
		if err := b.Vote(ctx, bob, asBob, asked.ID, true); err != nil {
			t.Fatal(err)
		}
		b.wantState(asked.ID, access.ApprovalApproved)
		if err := b.do(b.refund(102)); !isGuarded(err) {
			t.Errorf("another refund: %v", err)
		}
		if err := b.do(large); err != nil {
			t.Errorf("with two approvals: %v", err)
		}
		b.wantState(asked.ID, access.ApprovalUsed)
		if err := b.do(large); !isGuarded(err) {
			t.Errorf("used again: %v", err)
		}
		if err := b.Vote(ctx, bob, asBob, asked.ID, false); !errors.Is(err, access.ErrApprovalEnded) {
			t.Errorf("a vote after the use: %v", err)
		}

		refused := b.ask(large)
		for approves, s := range map[bool]access.Session{true: ada, false: bob} {
			if err := b.Vote(ctx, s, access.Principal{PersonID: s.PersonID, MerchantID: "acme"}, refused.ID, approves); err != nil && !errors.Is(err, access.ErrApprovalEnded) {
				t.Fatal(err)
			}
		}
		b.wantState(refused.ID, access.ApprovalRefused)

		late := b.ask(large)
		if late.ID == refused.ID {
			t.Error("a refused request was asked for again, and is the same")
		}
		b.at = b.at.Add(access.ConfirmedFor)
		if err := b.Vote(ctx, ada, asAda, late.ID, true); !errors.Is(err, access.ErrUnconfirmed) {
			t.Errorf("a vote in a session that is not confirmed: %v", err)
		}
		b.at = late.ExpiresAt.Add(-time.Second)
		for _, name := range []string{"ada", "bob"} {
			s, p := b.confirmed(name)
			if err := b.Vote(ctx, s, p, late.ID, true); err != nil {
				t.Fatal(err)
			}
		}
		b.at = late.ExpiresAt
		b.wantState(late.ID, access.ApprovalExpired)
		if err := b.do(large); !isGuarded(err) {
			t.Errorf("an expired approval: %v", err)
		}
		if late = b.ask(large); late.ID == refused.ID {
			t.Error("an expired request was asked for again, and is the same")
		}
		for state, n := range map[access.ApprovalState]int{access.ApprovalRequested: 1, access.ApprovalApproved: 0, access.ApprovalUsed: 1, access.ApprovalRefused: 1, access.ApprovalExpired: 1} {
			found, err := access.NewReader(store).Approvals(ctx, access.ApprovalFilter{MerchantID: "acme", State: state, At: b.at, Limit: 9})
			if err != nil || slices.ContainsFunc(found, func(a access.Approval) bool { return a.State != state }) || len(found) != n {
				t.Errorf("in the state %s are %+v, %v", state, found, err)
			}
		}
		if err := b.Clean(ctx, late.ExpiresAt.Add(access.ApprovalKept)); err != nil {
			t.Fatal(err)
		}
		if _, err := access.NewReader(store).Approval(ctx, late.ID, b.at); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("after the clean-up: %v", err)
		}
		late = b.ask(large)
		if err := store.Update(ctx, func(tx *db.Tx) error { return access.EndSessions(ctx, tx) }); err != nil {
			t.Fatal(err)
		}
		if again := b.ask(large); again.ID == late.ID {
			t.Error("a request is open after a restore")
		}
	})
}

// TestGuardOfPolicy guards the policy and the people who decide by it.
func TestGuardOfPolicy(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		w := newSessionWorld(t, store)
		b, ctx := w.board("acme"), t.Context()
		for _, name := range []string{"ada", "bob", "cem"} {
			b.join(name, access.Finance)
		}
		b.want(access.ApprovalPolicy{People: 2, RefundsAbove: invoice.MaxAmount})
		owner := b.owner.Principal()
		for _, p := range []access.ApprovalPolicy{{}, {People: 3, RefundsAbove: invoice.MaxAmount}, {People: 2}, {People: 2, RefundsAbove: invoice.MaxAmount, Keys: true}} {
			if err := b.SetApprovalPolicy(ctx, owner, "acme", p); !isGuarded(err) {
				t.Errorf("the owner sets %+v: %v", p, err)
			}
		}
		invited := access.Invitation{Email: "sock@example.com", Name: "Puppet", Scopes: access.Finance}
		_, _, err := b.Invite(ctx, owner, invited)
		if !isGuarded(err) {
			t.Errorf("an invitation to approve: %v", err)
		}
		if _, _, err := b.Invite(ctx, owner, access.Invitation{Email: "dev@example.com", Name: "Dev", Scopes: access.Developer}); err != nil {
			t.Errorf("another invitation: %v", err)
		}
		approve := func(err error) {
			t.Helper()
			var required *access.ApprovalRequiredError
			if !errors.As(err, &required) {
				t.Fatal(err)
			}
			asked := b.ask(required.GuardedAction)
			for _, name := range []string{"ada", "bob"} {
				s, p := b.confirmed(name)
				if err := b.Vote(ctx, s, p, asked.ID, true); err != nil {
					t.Fatal(err)
				}
			}
		}
		approve(err)
		invited.Email = "other@example.com"
		if _, _, err := b.Invite(ctx, owner, invited); !isGuarded(err) {
			t.Errorf("an invitation of another address: %v", err)
		}
		invited.Email = "sock@example.com"
		_, lost, err := b.Invite(ctx, owner, invited)
		if err != nil {
			t.Errorf("the approved invitation: %v", err)
		}
		b.at = b.at.Add(time.Minute)
		again, _, err := b.Invite(ctx, owner, invited)
		if err != nil || !again.ExpiresAt.Equal(b.at.Add(access.InvitationLifetime-time.Minute)) {
			t.Errorf("its mail was lost, and it is repeated: until %s, %v", again.ExpiresAt, err)
		}
		w.wantRefused(lost, "a repeated invitation", access.ErrLink)
		for _, other := range []access.Invitation{{Email: invited.Email, Name: "Other", Scopes: access.Finance}, {Email: invited.Email, Name: invited.Name, Scopes: access.Admin}} {
			if _, _, err := b.Invite(ctx, owner, other); !isGuarded(err) {
				t.Errorf("another invitation of the address, %+v: %v", other, err)
			}
		}
		other := w.person("acme", access.Admin)
		if again, _, err = b.Invite(ctx, other.Principal(), invited); err != nil {
			t.Fatal(err)
		}
		if _, err := b.keys.Revoke(ctx, access.Open(), other.ID); err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.Invite(ctx, owner, invited); !isGuarded(err) {
			t.Errorf("an invitation that ended with its maker's key: %v", err)
		}
		if err := b.Uninvite(ctx, owner, "acme", again.ID); err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.Invite(ctx, owner, invited); !isGuarded(err) {
			t.Errorf("the invitation after it was withdrawn: %v", err)
		}
		loose, strict := access.ApprovalPolicy{People: 2, RefundsAbove: invoice.NewAmount(1_000)}, access.ApprovalPolicy{People: 2}
		approve(b.SetApprovalPolicy(ctx, owner, "acme", loose))
		approve(b.SetApprovalPolicy(ctx, owner, "acme", strict))
		if err := b.SetApprovalPolicy(ctx, owner, "acme", strict); err != nil {
			t.Errorf("the approved policy: %v", err)
		}
		if err := b.SetApprovalPolicy(ctx, owner, "acme", loose); !isGuarded(err) {
			t.Errorf("a policy that was approved before a stricter one was set: %v", err)
		}
		if err := b.SetApprovalPolicy(ctx, access.Open(), "acme", access.ApprovalPolicy{}); err != nil {
			t.Errorf("the operator ends the policy: %v", err)
		}
		if err := b.SetApprovalPolicy(ctx, w.person("acme", access.Finance).Principal(), "acme", access.ApprovalPolicy{}); !errors.As(err, new(*access.ScopeError)) {
			t.Errorf("without keys:write: %v", err)
		}
		if err := b.SetApprovalPolicy(ctx, w.person("globex", access.Admin).Principal(), "acme", access.ApprovalPolicy{}); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("by another merchant: %v", err)
		}
	})
}

// TestGuardOfAddresses wants approvals for changes of addresses, and for nothing else of a merchant.
func TestGuardOfAddresses(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *merchantWorld) {
		ctx, b := t.Context(), newSessionWorld(t, w.db).board("acme")
		b.join("ada", access.Finance)
		b.join("bob", access.Finance)
		policy := access.ApprovalPolicy{People: 2, Addresses: true}
		field := (*invoice.FieldError)(nil)
		for _, merchant := range []string{"acme", "shop"} {
			if merchant == "shop" {
				shop := b.sessionWorld.board(merchant)
				shop.join("ada", access.Finance)
				shop.join("bob", access.Finance)
			}
			if err := b.SetApprovalPolicy(ctx, operator, merchant, policy); !errors.As(err, &field) || field.Field != "addresses" {
				t.Errorf("guarded addresses of %s without a list: %v", merchant, err)
			}
		}
		list := invoice.MerchantChange{Allowed: []invoice.AllowedAddress{home, bank}, DefaultAddresses: map[string]invoice.Address{"base": home.Address}}
		if _, err := w.Update(ctx, merchantAcme, "acme", list); err != nil {
			t.Fatal(err)
		}
		pending := invoice.MerchantChange{DefaultAddresses: map[string]invoice.Address{"base": bank.Address}}
		if got, err := w.Update(ctx, merchantAcme, "acme", pending); err != nil || got.PendingDefaults == nil {
			t.Fatalf("a change that takes effect later: %+v, %v", got.PendingDefaults, err)
		}
		b.want(policy)
		if got, err := w.Update(ctx, merchantAcme, "acme", list); err != nil || got.PendingDefaults != nil {
			t.Errorf("what is pending is dropped: %+v, %v", got.PendingDefaults, err)
		}
		if _, err := w.Update(ctx, merchantAcme, "acme", list); err != nil {
			t.Errorf("no change: %v", err)
		}
		if _, err := w.Update(ctx, merchantAcme, "acme", invoice.MerchantChange{Name: new("Acme & Co")}); err != nil {
			t.Errorf("another change: %v", err)
		}
		for _, c := range []invoice.MerchantChange{
			{Allowed: []invoice.AllowedAddress{home}}, {Allowed: []invoice.AllowedAddress{home, {ChainKey: "base", Address: invoice.Address{3}}}, Name: new("Bank")},
			{DefaultAddresses: map[string]invoice.Address{}}, {DefaultAddresses: map[string]invoice.Address{"base": bank.Address}},
		} {
			if _, err := w.Update(ctx, merchantAcme, "acme", c); !isGuarded(err) {
				t.Errorf("the change %+v: %v", c, err)
			}
		}
		if _, err := w.Update(ctx, operator, "acme", invoice.MerchantChange{Allowed: []invoice.AllowedAddress{home}}); err != nil {
			t.Errorf("by the operator: %v", err)
		}
	})
}

// TestGuardOfKeys wants approvals for keys and invitations with scopes that write.
func TestGuardOfKeys(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		w := newSessionWorld(t, store)
		b, ctx := w.board("acme"), t.Context()
		b.join("ada", access.Finance)
		b.join("bob", access.Finance)
		_, early := b.invite(b.owner, "early@example.com", access.Developer)
		_, support := b.invite(b.owner, "support@example.com", access.Support)
		b.want(access.ApprovalPolicy{People: 2, Keys: true})
		w.wantRefused(early, "an invitation from before the policy", access.ErrLink)
		if w.join(support) == "" {
			t.Error("an invitation that needs no approval has ended")
		}
		owner := b.owner.Principal()
		for _, scope := range access.AllScopes {
			want := slices.Contains([]access.Scope{access.InvoicesWrite, access.AttributionWrite, access.WebhooksWrite, access.KeysWrite}, scope)
			_, _, err := b.keys.Create(ctx, owner, access.KeyRequest{Name: "program", Scopes: access.NewScopes(access.InvoicesRead, scope)})
			if want != isGuarded(err) || !want && err != nil {
				t.Errorf("a key with %s: %v", scope, err)
			}
			_, _, err = b.Invite(ctx, owner, access.Invitation{Email: "new@example.com", Name: "New", Scopes: access.NewScopes(scope)})
			if want != isGuarded(err) || !want && err != nil {
				t.Errorf("an invitation with %s: %v", scope, err)
			}
		}
		program, _, err := b.keys.Create(ctx, b.operator.Principal(), access.KeyRequest{Name: "program", MerchantID: "acme", Scopes: access.Admin})
		if err != nil {
			t.Errorf("by the operator: %v", err)
		}
		if _, _, err := b.keys.Rotate(ctx, owner, program.ID, access.MaxOverlap); !isGuarded(err) {
			t.Errorf("a rotation of another key: %v", err)
		}
		_, linked := w.enter(owner, program.ID) // to whom the page shows the new key's secret
		if _, _, err := b.keys.Rotate(ctx, linked, program.ID, access.MaxOverlap); !isGuarded(err) {
			t.Errorf("a rotation in a session by the link of another key: %v", err)
		}
		if _, _, err := b.keys.Rotate(ctx, owner, b.owner.ID, 0); err != nil {
			t.Errorf("a rotation of the own key: %v", err)
		}
		_, own := w.enter(program.Principal(), program.ID)
		if _, _, err := b.keys.Rotate(ctx, own, program.ID, 0); err != nil {
			t.Errorf("a rotation in a session by the key's own link: %v", err)
		}
		b.secretFor(b.person("acme", access.Admin).Principal())
	})
}

// secretFor has people approve keys. Only who asked makes them, and only with the same overlap.
func (b *board) secretFor(owner access.Principal) {
	b.t.Helper()
	ctx, thief := b.t.Context(), b.person("acme", access.Admin)
	program := b.person("acme", access.Admin)
	create := func(by access.Principal) error {
		return third(b.keys.Create(ctx, by, access.KeyRequest{Name: "shop", Scopes: access.Admin}))
	}
	rotate := func(overlap time.Duration) func(access.Principal) error {
		return func(by access.Principal) error { return third(b.keys.Rotate(ctx, by, program.ID, overlap)) }
	}
	_, linked := b.enter(thief.Principal(), owner.KeyID)
	for n, do := range []func(access.Principal) error{create, rotate(time.Hour)} {
		name := []string{"a key", "a rotation"}[n]
		required := (*access.ApprovalRequiredError)(nil)
		if err := do(owner); !errors.As(err, &required) {
			b.t.Fatalf("%s: %v", name, err)
		}
		asked := b.ask(required.GuardedAction)
		for _, who := range []string{"ada", "bob"} {
			s, p := b.confirmed(who)
			if err := b.Vote(ctx, s, p, asked.ID, true); err != nil {
				b.t.Fatal(err)
			}
		}
		for other, by := range map[string]access.Principal{"another key": thief.Principal(), "a session by its link": linked} {
			if err := do(by); !isGuarded(err) {
				b.t.Errorf("%s by %s: %v", name, other, err)
			}
		}
		if err := rotate(0)(owner); !isGuarded(err) {
			b.t.Errorf("a rotation with another overlap: %v", err)
		}
		if err := do(owner); err != nil {
			b.t.Errorf("%s by who asked: %v", name, err)
		}
	}
}

// TestMaxApprovals bounds the open requests of a merchant, and of a person or key.
func TestMaxApprovals(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		b := newSessionWorld(t, store).board("acme")
		b.join("ada", access.Finance)
		b.join("bob", access.Finance)
		b.want(access.ApprovalPolicy{People: 2})
		for n := range access.MaxApprovals {
			a := b.refund(uint64(n + 1))
			a.By.KeyID = fmt.Sprint("key_", n/access.MaxApprovalsOf) // all have one name
			b.ask(a)
			if a.Amount = invoice.NewAmount(1_000); n == access.MaxApprovalsOf-1 {
				a.Subject = "one more"
				if _, err := b.request(a); !errors.Is(err, access.ErrTooManyApprovals) {
					t.Errorf("one more of a key: %v", err)
				}
			}
		}
		if _, err := b.request(b.refund(1_000)); !errors.Is(err, access.ErrTooManyApprovals) {
			t.Errorf("one more: %v", err)
		}
		first := b.refund(1)
		b.ask(first)
		b.at = b.at.Add(access.ApprovalLifetime)
		leaked := b.person("acme", access.Admin)
		for n := range access.MaxApprovalsOf {
			a := b.refund(uint64(n + 1))
			a.By = leaked.Principal()
			b.ask(a)
		}
		kept := b.ask(b.refund(1_000)) // by another key of the same name
		left := b.ask(access.GuardedAction{By: leaked.Principal(), Kind: access.OfRefund, Subject: first.Subject, Amount: first.Amount})
		if _, err := b.keys.Revoke(t.Context(), access.Open(), leaked.ID); err != nil {
			t.Fatal(err)
		}
		b.wantState(left.ID, access.ApprovalExpired)
		b.wantState(kept.ID, access.ApprovalRequested)
		removed := first
		_, removed.By = b.join("mallory", access.Admin)
		left = b.ask(removed)
		if _, err := b.keys.Revoke(t.Context(), access.Open(), removed.By.KeyID); err != nil {
			t.Fatal(err)
		}
		b.wantState(left.ID, access.ApprovalExpired)
		b.wantState(kept.ID, access.ApprovalRequested)
		b.want(access.ApprovalPolicy{})
		b.wantState(kept.ID, access.ApprovalExpired)
		if open, err := b.OpenApprovals(t.Context(), access.Open(), "acme"); err != nil || open > 0 {
			t.Errorf("without a policy %d requests are open, %v", open, err)
		}
	})
}

// TestTooFewApprove makes 1,000 concurrent attempts to act with the votes of one person too few, while people join and
// leave. None succeeds. With enough votes exactly one of 1,000 does.
func TestTooFewApprove(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		w := newSessionWorld(t, store)
		b, ctx := w.board("acme"), t.Context()
		sessions, principals := make(map[string]access.Session), make(map[string]access.Principal)
		for name, scopes := range map[string]access.Scopes{"ada": access.Admin, "bob": access.Finance, "cem": access.Finance, "dev": access.Developer, "eve": access.Finance} {
			sessions[name], principals[name] = b.join(name, scopes)
		}
		b.want(access.ApprovalPolicy{People: 3, RefundsAbove: invoice.NewAmount(100)})
		action := b.refund(500)
		asked := b.ask(action)
		vote := func(name string) error { return b.Vote(ctx, sessions[name], principals[name], asked.ID, true) }
		if err := vote("eve"); err != nil {
			t.Fatal(err)
		}
		if _, err := b.keys.Revoke(ctx, access.Open(), principals["eve"].KeyID); err != nil {
			t.Fatal(err)
		}
		var done, joined atomic.Int64
		attempt := func(n int) error {
			switch n % 5 {
			case 0:
				return vote([]string{"ada", "bob"}[n/5%2])
			case 1:
				return vote([]string{"dev", "eve"}[n/5%2])
			case 2:
				if n%100 == 2 { // people come and go, who do not vote
					_, p := b.join(fmt.Sprint("fay", joined.Add(1)), access.Finance)
					_, err := b.keys.Revoke(ctx, access.Open(), p.KeyID)
					return err
				}
				_, err := b.request(action)
				return err
			}
			err := b.do(action)
			if err == nil {
				done.Add(1)
			}
			return err
		}
		concurrently := func(attempt func(n int) error) {
			t.Helper()
			var all sync.WaitGroup
			for worker := range 100 {
				all.Go(func() {
					for n := range 10 {
						if err := attempt(10*worker + n); err != nil && !isGuarded(err) && !errors.Is(err, access.ErrMayNotApprove) && !errors.Is(err, access.ErrApprovalEnded) {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
		}
		concurrently(attempt)
		if done.Load() != 0 {
			t.Fatalf("%d attempts succeeded with two approvals of three", done.Load())
		}
		b.wantState(asked.ID, access.ApprovalRequested)
		concurrently(func(n int) error {
			if n == 500 {
				return vote("cem")
			}
			return attempt(5*n + 3)
		})
		if err := b.do(action); err == nil {
			done.Add(1)
		}
		if done.Load() != 1 {
			t.Errorf("%d attempts succeeded with three approvals", done.Load())
		}
		b.wantState(asked.ID, access.ApprovalUsed)
	})
}

// approvalModel is what a merchant's people have decided about one refund.
type approvalModel struct {
	*board
	people map[string]bool // whether a person is a member
	wants  int
	asked  string // id of the open request, or empty
	needed int
	votes  map[string]bool
	until  time.Time
}

var voters = []string{"ada", "bob", "cem", "dan"}

// enough reports whether the refund may be made.
func (m *approvalModel) enough() bool {
	n := 0
	for name := range m.votes {
		if m.people[name] {
			n++
		}
	}
	return m.wants == 0 || m.asked != "" && m.at.Before(m.until) && n >= max(m.wants, m.needed)
}

// TestApprovalModel plays random votes, changes of people and of the policy, and times. The refund is made if and only
// if the model permits it.
func TestApprovalModel(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		run, w := 0, newSessionWorld(t, store)
		operator := w.person("", access.Admin)
		rapid.Check(t, func(r *rapid.T) {
			run++
			merchant := fmt.Sprintf("m%d", run)
			b := &board{w, merchant, w.person(merchant, access.Admin), operator}
			m := &approvalModel{board: b, people: make(map[string]bool)}
			for _, name := range voters {
				b.join(name, access.Finance)
				m.people[name] = true
			}
			m.set(r, 2)
			action := b.refund(500)
			r.Repeat(map[string]func(*rapid.T){
				"ask": func(*rapid.T) {
					switch made, err := b.request(action); {
					case m.wants == 0 && errors.Is(err, access.ErrApprovalEnded):
					case err != nil || m.wants == 0:
						r.Fatalf("asked for approvals: %v", err)
					case made.ID != m.asked:
						if m.asked != "" && m.at.Before(m.until) {
							r.Fatal("a second open request was made")
						}
						m.asked, m.needed, m.votes, m.until = made.ID, m.wants, make(map[string]bool), made.ExpiresAt
					}
				},
				"vote":      m.vote,
				"vote more": m.vote,
				"policy":    func(r *rapid.T) { m.set(r, rapid.SampledFrom([]int{0, 2, 2, 3}).Draw(r, "people")) },
				"wait": func(r *rapid.T) {
					m.at = m.at.Add(rapid.SampledFrom([]time.Duration{time.Minute, 3 * 24 * time.Hour}).Draw(r, "time"))
				},
				"come or go": func(r *rapid.T) {
					name := rapid.SampledFrom(voters).Draw(r, "name")
					if m.people[name] {
						_, p := b.confirmed(name)
						if _, err := b.keys.Revoke(t.Context(), access.Open(), p.KeyID); err != nil {
							r.Fatal(err)
						}
					} else {
						b.join(name, access.Finance)
					}
					m.people[name] = !m.people[name]
				},
				"use": func(r *rapid.T) {
					may := m.enough()
					if err := b.do(action); may != (err == nil) || err != nil && !isGuarded(err) {
						r.Fatalf("used: %v; want %v", err, may)
					}
					if may && m.wants > 0 {
						m.asked = ""
					}
				},
			})
		})
	})
}

func (m *approvalModel) set(r *rapid.T, people int) {
	members := 0
	for _, is := range m.people {
		if is {
			members++
		}
	}
	err := m.SetApprovalPolicy(m.t.Context(), access.Open(), m.merchant, access.ApprovalPolicy{People: people, RefundsAbove: invoice.NewAmount(100)})
	if (err == nil) != (people <= members || people == m.wants) {
		r.Fatalf("a policy of %d of %d people: %v", people, members, err)
	}
	if err == nil {
		m.wants = people
	}
	if m.wants == 0 {
		m.asked = "" // the request has ended
	}
}

func (m *approvalModel) vote(r *rapid.T) {
	name, approves := rapid.SampledFrom(voters).Draw(r, "name"), rapid.IntRange(0, 5).Draw(r, "refuse") > 0
	if m.asked == "" || !m.people[name] {
		return
	}
	s, p := m.confirmed(name)
	err := m.Vote(m.t.Context(), s, p, m.asked, approves)
	if may := m.wants > 0 && m.at.Before(m.until); may != (err == nil) {
		r.Fatalf("a vote: %v; want %v", err, may)
	}
	if err != nil {
		return
	}
	if !approves {
		m.asked = ""
		return
	}
	m.votes[name] = true
}
