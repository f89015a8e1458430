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

// wantNotices takes all mails that are due, and fails the test unless they have these people, languages, numbers of
// requests and merchants.
func (b *board) wantNotices(what string, want ...string) (taken []access.ApprovalNotice) {
	b.t.Helper()
	var got []string
	for {
		due, err := b.TakeApprovalNotices(b.t.Context())
		if errors.Is(err, db.ErrNotFound) {
			break
		}
		if err != nil {
			b.t.Fatal(err)
		}
		n := due[0]
		taken, got = append(taken, n), append(got, fmt.Sprint(n.Person.Name, n.Person.Language, len(n.Approvals), n.Merchant))
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		b.t.Errorf("%s: %v, want %v", what, got, want)
	}
	return taken
}

// end records that mails were sent.
func (b *board) end(sent []access.ApprovalNotice) {
	b.t.Helper()
	for _, n := range sent {
		if err := b.EndApprovalNotice(b.t.Context(), n); err != nil {
			b.t.Error(err)
		}
	}
}

// TestApprovalNotices: each request leads to one mail to each person who may approve and has not voted, in the person's
// language and not before a pause. A mail that is not known to be sent is due again.
func TestApprovalNotices(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		b := newSessionWorld(t, store).board("acme")
		ada, _ := b.join("ada", access.Finance)
		b.join("bob", access.Finance)
		b.join("dev", access.Developer)
		b.want(access.ApprovalPolicy{People: 2})
		if err := b.SetLanguage(t.Context(), ada, "de"); err != nil {
			t.Fatal(err)
		}
		vote := func(name string, asked access.Approval) {
			t.Helper()
			if s, p := b.confirmed(name); b.voteAs(s, p, asked.ID) != nil {
				t.Fatal("the vote of", name)
			}
		}
		pass := func(d time.Duration) { b.at = b.at.Add(d) }

		b.wantNotices("without a request")
		b.ask(b.refund(1))
		lost := b.wantNotices("a request", "adade1acme", "bob1acme")
		pass(access.ApprovalNoticePause - time.Second)
		b.wantNotices("before the pause is over")
		pass(time.Second)
		b.end(b.wantNotices("mails that were not sent", "adade1acme", "bob1acme"))
		b.end(lost)
		pass(access.ApprovalNoticePause)
		b.wantNotices("sent mails")

		second, third := b.ask(b.refund(2)), b.ask(b.refund(3))
		vote("ada", second)
		b.end(b.wantNotices("after a vote of ada", "adade1acme", "bob2acme"))

		pass(access.ApprovalNoticePause)
		b.join("cid", access.Finance)
		approved := b.ask(b.refund(4))
		vote("ada", approved)
		vote("bob", approved)
		b.wantNotices("an approved request")
		b.ask(b.refund(5))
		b.end(b.wantNotices("a request after an approved one", "adade1acme", "bob1acme", "cid1acme"))
		if err := b.do(b.refund(4)); err != nil {
			t.Fatal(err)
		}

		pass(access.ApprovalNoticePause)
		refused := b.ask(b.refund(6))
		s, p := b.confirmed("bob")
		if err := errors.Join(b.voteAs(s, p, third.ID), b.Vote(access.WithPrincipal(t.Context(), p), s, p, refused.ID, false)); err != nil {
			t.Fatal(err)
		}
		b.wantNotices("a refused request")
		b.ask(b.refund(7))
		pass(access.ApprovalLifetime)
		b.wantNotices("expired requests")

		b.ask(b.refund(8))
		var all sync.WaitGroup
		var mu sync.Mutex
		var taken []access.ApprovalNotice
		for range 8 {
			all.Go(func() {
				for {
					due, err := b.TakeApprovalNotices(t.Context())
					if err != nil {
						if !errors.Is(err, db.ErrNotFound) {
							t.Error(err)
						}
						return
					}
					mu.Lock()
					taken = append(taken, due[0])
					mu.Unlock()
				}
			})
		}
		all.Wait()
		b.end(append(taken, b.wantNotices("what replicas kept from each other")...))
		if len(taken) != 3 {
			t.Errorf("replicas took %+v", taken)
		}
		if left, err := db.QueryRow(t.Context(), store, db.ScanCount, access.CountNotices); err != nil || left != 0 {
			t.Errorf("%d mails are left of requests that have ended, or were mailed about, %v", left, err)
		}

		pass(-30 * 24 * time.Hour)
		b.ask(b.refund(9))
		b.end(b.wantNotices("after the clock was set back", "adade1acme", "bob1acme", "cid1acme"))
	})
}
