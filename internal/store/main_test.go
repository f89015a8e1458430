package store_test

import (
	"os"
	"testing"

	"github.com/quittance/quittance/internal/testdeps"
)

func TestMain(m *testing.M) {
	testdeps.Short("TestUnavailable", "TestUnavailableUnderLoad", "TestHalfOpen", "TestPooler", "TestUnreplicatedCommitStaysInvisible", "TestOpenAtOnce", "TestEventsInOrderOfCommits", "TestLeaseDeliveriesSkipsLockedMerchants", "TestLockServiceOnPostgres", "TestStatementsForOneEvent", "TestUpdateStatistics",
		"TestOpenStrangePaths", "TestDestroyedFile", "TestCrash", "TestVerifyAudit", "TestStatementsUseIndexes", "TestLeaseDeliveriesProperties")
	os.Exit(m.Run())
}
