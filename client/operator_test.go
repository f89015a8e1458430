package client_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestOperatorRequests sends the requests of the operator.
func TestOperatorRequests(t *testing.T) {
	var sent []string
	status, err := json.Marshal(apitypes.ServiceStatus{Version: "v1", Stalled: []apitypes.StalledWork{}, Limits: []apitypes.LimitInForce{}, Chains: []apitypes.ChainStatus{}})
	expect.OK(t, err)
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		sent = append(sent, fmt.Sprintf("%s %s %s", r.Method, r.URL, body))
		w.Header().Set("Content-Type", "application/json")
		answer := map[string]string{
			"/api/operator/status": string(status), "/api/operator/merchants": `{"merchants":[{"id":"acme"}]}`, "/api/operator/audit/verify": `{"head":"7:ab"}`,
			"/api/operator/chains/base/rescan": `{"chainKey":"base","from":5,"to":9}`, "/api/operator/chains/base/resume": `{"chainKey":"base","halted":"why"}`,
		}[r.URL.Path]
		if _, err := io.WriteString(w, answer); err != nil {
			t.Error(err)
		}
	}, true)
	ctx := t.Context()
	shown, err1 := c.ServiceStatus(ctx)
	rescan, err2 := c.RescanChain(ctx, "base", 5)
	resume, err3 := c.ResumeChain(ctx, "base")
	verified, err4 := c.VerifyAudit(ctx, "7:ab")
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			t.Error(err)
		}
	}
	if shown.Version != "v1" || rescan.To != 9 || resume.Halted != "why" || verified.Head != "7:ab" {
		t.Errorf("answered %+v, %+v, %+v, %+v", shown, rescan, resume, verified)
	}
	for m, err := range c.MerchantOverviews(ctx, 2) {
		if err != nil || m.ID != "acme" {
			t.Errorf("%+v, %v", m, err)
		}
	}
	want := []string{
		"GET /api/operator/status ", `POST /api/operator/chains/base/rescan {"from":5}`, "POST /api/operator/chains/base/resume ",
		`POST /api/operator/audit/verify {"head":"7:ab"}`, "GET /api/operator/merchants?limit=2 ",
	}
	if got := strings.Join(sent, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("sent\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}
