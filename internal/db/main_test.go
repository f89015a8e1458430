package db_test

import (
	"os"
	"testing"

	"github.com/quittance/quittance/internal/test/testdeps"
)

func TestMain(m *testing.M) {
	const parallel = 4 // they wait for locks and timeouts
	testdeps.Parallel(parallel)
	os.Exit(m.Run())
}
