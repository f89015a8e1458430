package db_test

import (
	"os"
	"testing"

	"github.com/quittance/quittance/internal/testdeps"
)

func TestMain(m *testing.M) {
	testdeps.Short("TestUnavailable", "TestUnavailableUnderLoad", "TestHalfOpen", "TestPooler", "TestUnreplicatedCommitStaysInvisible", "TestOpenAtOnce", "TestEventsInOrderOfCommits", "TestLeaseDeliveriesSkipsLockedMerchants", "TestLockServiceOnPostgres", "TestStatementsForOneEvent", "TestUpdateStatistics", "TestStandby.*", "TestConflictWithReplay", "TestReadYourWritesOnStandby", "TestTransactionsOfRequests", "TestHeartbeats",
		"TestOpenStrangePaths", "TestDestroyedFile", "TestCrash", "TestVerifyAudit", "TestStatementsUseIndexes", "TestLeaseDeliveriesProperties")
	const parallel = 4 // they wait for locks and timeouts
	testdeps.Parallel(parallel)
	os.Exit(m.Run())
}
