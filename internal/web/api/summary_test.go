package api_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/quittance/quittance/internal/web/api"
)

// TestSummaryRefusesParameters names the parameter that is wrong.
func TestSummaryRefusesParameters(t *testing.T) {
	h := newAPI(t, reported())
	tooEarly := testClock().Add(-api.MaxSummaryPeriod).Unix()
	for query, field := range map[string]string{
		"": "from", "from=yesterday": "from", "from=9999-01-01": "from", "from=" + fmt.Sprint(tooEarly): "from", "from=-1": "from",
		"from=1&timezone=Mars": "timezone", "from=1&merchantId=no%00body": "merchantId", "from=1&to=2": "to", "from=1&groupBy=day": "groupBy",
	} {
		wantProblem(t, do(h, "GET", "/api/reports/summary?"+query, ""), http.StatusBadRequest, "invalid_field", field)
	}
}
