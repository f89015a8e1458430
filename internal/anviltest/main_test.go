package anviltest

import (
	"os"
	"testing"

	"github.com/quittance/quittance/internal/testdeps"
)

func TestMain(m *testing.M) {
	testdeps.Short("TestAnvil", "TestReorgWithTransactions", "TestBlockTime")
	os.Exit(m.Run())
}
