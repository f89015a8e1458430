package otlp

import (
	"os"
	"testing"

	"github.com/quittance/quittance/internal/testdeps"
)

func TestMain(m *testing.M) {
	testdeps.Short("TestDeadCollector")
	os.Exit(m.Run())
}
