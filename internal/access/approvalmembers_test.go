package access_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// voteAs records a vote of a member, with the member as the actor of the audit log.
func (b *board) voteAs(s access.Session, p access.Principal, id string) error {
	return b.Vote(access.WithPrincipal(b.t.Context(), p), s, p, id, true)
}

// TestApprovalsOfMembers: people join, vote and leave while an action is repeated. By the order of the audit log, each use
// of an approval has the votes of enough people who are members then.
func TestApprovalsOfMembers(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		const people, rounds, needed = 4, 12, 2
		w := newSessionWorld(t, store)
		b, ctx := w.board("acme"), t.Context()
		b.join("ada", access.Admin)
		b.join("bob", access.Finance)
		b.want(access.ApprovalPolicy{People: needed})
		action := b.refund(500)
		var all sync.WaitGroup
		for n := range people {
			all.Go(func() {
				name := fmt.Sprint("fay", n)
				for range rounds {
					s, p := b.join(name, access.Finance)
					for range 2 {
						if err := b.voteAs(s, p, b.ask(action).ID); err != nil && !errors.Is(err, access.ErrApprovalEnded) {
							t.Error(err)
						}
						if err := b.do(action); err != nil && !isGuarded(err) {
							t.Error(err)
						}
					}
					if _, err := b.keys.Revoke(ctx, access.Open(), p.KeyID); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		log, err := access.NewReader(store).AuditEntries(ctx, access.AuditFilter{MerchantID: "acme", Limit: 10_000})
		if err != nil {
			t.Fatal(err)
		}
		slices.Reverse(log)
		members, votes, used := make(map[string]bool), make(map[string][]string), 0
		for _, e := range log {
			switch e.Action { //nolint:exhaustive // the others change no votes
			case access.ActionKeyCreate:
				members[e.Object] = true
			case access.ActionKeyRevoke:
				delete(members, e.Object)
			case access.ActionApprovalApprove:
				votes[e.Object] = append(votes[e.Object], b.personOf(e.Actor))
			case access.ActionApprovalUse:
				used++
				voters := make(map[string]bool)
				for key := range members {
					if id := b.personOf(key); slices.Contains(votes[e.Object], id) {
						voters[id] = true
					}
				}
				if len(voters) < needed {
					t.Errorf("entry %d uses %s with the votes of %d members", e.Seq, e.Object, len(voters))
				}
			}
		}
		if used == 0 {
			t.Error("no approval was used")
		}
	})
}

// personOf returns the person of a membership.
func (b *board) personOf(key string) string {
	b.t.Helper()
	r, err := access.NewReader(b.store).Key(b.t.Context(), key)
	if err != nil {
		b.t.Fatal(err)
	}
	return r.PersonID
}

// TestRejoinedVoter: a vote counts again once the person is a member again, without another one.
func TestRejoinedVoter(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		b := newSessionWorld(t, store).board("acme")
		ada, asAda := b.join("ada", access.Finance)
		bob, asBob := b.join("bob", access.Finance)
		b.want(access.ApprovalPolicy{People: 2})
		action := b.refund(500)
		asked := b.ask(action)
		if err := b.voteAs(ada, asAda, asked.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := b.keys.Revoke(t.Context(), access.Open(), asAda.KeyID); err != nil {
			t.Fatal(err)
		}
		if err := b.voteAs(bob, asBob, asked.ID); err != nil {
			t.Fatal(err)
		}
		b.wantState(asked.ID, access.ApprovalRequested)
		if err := b.do(action); !isGuarded(err) {
			t.Errorf("with the vote of one member: %v", err)
		}
		b.join("ada", access.Finance)
		b.wantState(asked.ID, access.ApprovalApproved)
		if err := b.do(action); err != nil {
			t.Errorf("with the votes of two members: %v", err)
		}
	})
}

// TestMayApprove: the database knows the people who may approve by the same rule as the service.
func TestMayApprove(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		b, want := newSessionWorld(t, store).board("acme"), []string(nil)
		sets := []access.Scopes{access.Admin, access.Finance, access.Developer, access.Support, access.Read}
		for _, scope := range access.Finance.Names() {
			sets = append(sets, access.Admin&^access.NewScopes(access.Scope(scope)))
		}
		for n, scopes := range sets {
			name := fmt.Sprint("p", n)
			if b.join(name, scopes); access.MayApprove(scopes) {
				want = append(want, name)
			}
		}
		found, err := access.NewReader(store).Approvers(t.Context(), "acme", b.at)
		var got []string
		for _, r := range found {
			got = append(got, r.Name)
		}
		if slices.Sort(got); err != nil || len(want) != 2 || !slices.Equal(got, want) {
			t.Errorf("%v may approve, %v; want %v", got, err, want)
		}
	})
}
