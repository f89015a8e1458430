package access_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// TestApprovalNotices: people are mailed once about new requests about which they have not voted, in their language, and
// not again before a pause.
func TestApprovalNotices(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		b, ctx := newSessionWorld(t, store).board("acme"), t.Context()
		ada, asAda := b.join("ada", access.Finance)
		b.join("bob", access.Finance)
		b.join("dev", access.Developer)
		b.want(access.ApprovalPolicy{People: 2})
		if err := b.SetLanguage(ctx, ada, "de"); err != nil {
			t.Fatal(err)
		}
		take := func(what string, want ...string) {
			t.Helper()
			notices, err := b.TakeApprovalNotices(ctx)
			var got []string
			for _, n := range notices {
				got = append(got, fmt.Sprint(n.Person.Name, n.Person.Language, n.Requests, n.Merchant))
			}
			slices.Sort(got)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %v, %v; want %v", what, got, err, want)
			}
		}
		take("without a request")
		first := b.ask(b.refund(1))
		take("a request", "adade1acme", "bob1acme")
		take("again")
		b.at = b.at.Add(access.ApprovalNoticePause)
		take("later, without a new request")
		second := b.ask(b.refund(2))
		if err := b.voteAs(ada, asAda, first.ID); !errors.Is(err, access.ErrUnconfirmed) {
			t.Fatal(err)
		}
		ada, asAda = b.confirmed("ada")
		bob, asBob := b.confirmed("bob")
		if err := errors.Join(b.voteAs(ada, asAda, first.ID), b.voteAs(ada, asAda, second.ID)); err != nil {
			t.Fatal(err)
		}
		take("after votes of one", "bob2acme")
		if err := errors.Join(b.voteAs(bob, asBob, first.ID), b.voteAs(bob, asBob, second.ID)); err != nil {
			t.Fatal(err)
		}
		b.ask(b.refund(3))
		b.at = b.at.Add(access.ApprovalNoticePause - time.Second)
		take("before the pause is over")
		b.at = b.at.Add(time.Second)
		take("a third request", "adade1acme", "bob1acme")
		b.ask(b.refund(4))
		b.at = b.at.Add(access.ApprovalLifetime)
		take("only expired requests")

		var all sync.WaitGroup
		b.ask(b.refund(5))
		taken := make([]int, 8)
		for i := range taken {
			all.Go(func() {
				notices, err := b.TakeApprovalNotices(ctx)
				if err != nil {
					t.Error(err)
				}
				taken[i] = len(notices)
			})
		}
		all.Wait()
		if slices.Sort(taken); taken[len(taken)-1] != 2 || taken[len(taken)-2] != 0 {
			t.Errorf("replicas took %v notices", taken)
		}
	})
}
