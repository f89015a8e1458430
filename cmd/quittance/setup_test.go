package main

import (
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// TestSetup makes a link to the setup page. The audit log names who made it.
func TestSetup(t *testing.T) {
	url := dbtest.SQLite(t)
	config := auditConfig(t, url)
	command := func(args ...string) string {
		t.Helper()
		var out, errs strings.Builder
		if code := run(t.Context(), environment{stdout: &out, stderr: &errs, zone: time.UTC}, append(args, "--config", config)); code != 0 {
			t.Errorf("%v exits %d: %s", args, code, errs.String())
		}
		return out.String()
	}
	link := command("setup")
	if !strings.HasPrefix(link, "http://127.0.0.1:1/dashboard/sign-in?link="+access.PrefixLinkToken) || !strings.HasSuffix(link, "&next=%2Fdashboard%2Foperator%2Fsetup\n") {
		t.Errorf("it prints %s", link)
	}
	log := command("audit", "list")
	if strings.Count(log, access.ActorCommand) != 2 || !strings.Contains(log, string(access.ActionKeyCreate)) || !strings.Contains(log, string(access.ActionSignInLink)) {
		t.Errorf("the audit log is\n%s", log)
	}
}
