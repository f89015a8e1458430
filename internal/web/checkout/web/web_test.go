package web_test

import (
	"testing"

	"github.com/quittance/quittance/internal/test/webtest"
)

func TestExtraBundles(t *testing.T) {
	t.Parallel()
	webtest.Bundles(t, "../static")
}

func TestExtraTypes(t *testing.T) {
	t.Parallel()
	webtest.Types(t, "internal/web/checkout/web")
}
