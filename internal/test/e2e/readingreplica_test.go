package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/test/anviltest"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// TestExtraReadingReplica runs three replicas. One of them reads the chain. It is killed twice: another
// takes over and sees the payments made since, and all show how far the chain was read.
func TestExtraReadingReplica(t *testing.T) {
	t.Parallel()
	s := newService(t, dbtest.MigratedPostgres(t), anviltest.Options{BlockTime: time.Second})
	replicas := []*replica{s.start(), s.start(), s.start()}
	for i := range 2 {
		at := s.readingReplica(replicas)
		killed := time.Now()
		replicas[at].kill()
		replicas = append(replicas[:at], replicas[at+1:]...)
		made := s.create(replicas[0], (i+1)*10_000)
		tx := s.payTransferAmount(made)
		if err := await(within(s, s.patience), func() bool { return len(s.payments(replicas[0])) > i }); err != nil {
			t.Fatal("no payment was seen after the replica that reads was killed")
		}
		t.Logf("%v after the replica that reads was killed, a payment is seen", time.Since(killed).Round(time.Millisecond))
		s.awaitPayment(replicas[0], made.ID, tx, apitypes.PaymentConfirmed)
		replicas = append(replicas, s.start())
		for _, r := range replicas {
			s.awaitIndexed(r)
		}
	}
}

// readingReplica waits until exactly one of the replicas reads the chain, and returns its number.
func (s *service) readingReplica(replicas []*replica) (at int) {
	s.Helper()
	if err := await(within(s, s.patience), func() bool {
		var reading []int
		for i, r := range replicas {
			if _, text := s.get(r, "/metrics"); strings.Contains(text, `quittance_chain_reading{chain="anvil"} 1`) {
				reading = append(reading, i)
			}
		}
		if len(reading) == 1 {
			at = reading[0]
		}
		return len(reading) == 1
	}); err != nil {
		s.Fatal("it never is one replica that reads the chain")
	}
	return at
}
