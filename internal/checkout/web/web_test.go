package web_test

import (
	"os"
	"testing"

	"github.com/quittance/quittance/internal/testdeps"
	"github.com/quittance/quittance/internal/webpage/webtest"
)

func TestMain(m *testing.M) {
	testdeps.Short("TestBundles", "TestTypes")
	os.Exit(m.Run())
}

func TestBundles(t *testing.T) {
	t.Parallel()
	webtest.Bundles(t, "../static")
}

func TestTypes(t *testing.T) {
	t.Parallel()
	webtest.Types(t, "internal/checkout/web")
}
