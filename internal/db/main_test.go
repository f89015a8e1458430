package db_test

import (
	"os"
	"testing"

	"github.com/quittance/quittance/internal/testdeps"
)

func TestMain(m *testing.M) {
	testdeps.Short("TestStandby.*", "TestUnavailable", "TestUnavailableUnderLoad", "TestHalfOpen", "TestPooler", "TestUnreplicatedCommitStaysInvisible", "TestOpenAtOnce", "TestLockServiceOnPostgres", "TestUpdateStatistics", "TestConflictWithReplay", "TestReadYourWritesOnStandby", "TestTransactionsOfRequests", "TestHeartbeats",
		"TestOpenStrangePaths", "TestDestroyedFile", "TestCrash")
	const parallel = 4 // they wait for locks and timeouts
	testdeps.Parallel(parallel)
	os.Exit(m.Run())
}
