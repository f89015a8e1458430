package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestExtraListsOfStandby runs two services, and lists through each what was just created through the
// other. The standby serves the lists, until it is killed.
func TestExtraListsOfStandby(t *testing.T) {
	t.Parallel()
	primary, err := dbtest.StartCluster(t.Context(), dbtest.Options{Fsync: true})
	expect.OK(t, err)
	t.Cleanup(func() { stopCluster(t, primary) })
	standby, err := dbtest.StartReplica(t.Context(), primary)
	expect.OK(t, err)
	t.Cleanup(func() { stopCluster(t, standby) })
	var bases []string
	for range 2 {
		c, _ := scripted(t, "house", 7)
		bases = append(bases, startServer(t, Config{
			Database: primary.DSN("postgres"), ReadOnly: standby.DSN("postgres"), Chains: []Chain{c}, Merchants: Merchants{AcceptAll: true},
		}).url)
	}
	createAndList := func(n int) {
		t.Helper()
		made := create(t, bases[n%2], "house")
		var inv struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal([]byte(made.body), &inv); err != nil || made.status != http.StatusCreated {
			t.Fatalf("create: %d %s", made.status, made.body)
		}
		listed := ask(t, http.MethodGet, bases[(n+1)%2]+"/api/invoices", "")
		if listed.status != http.StatusOK || !strings.Contains(listed.body, fmt.Sprintf("%q", inv.ID)) {
			t.Fatalf("the list lacks %s: %d %s", inv.ID, listed.status, listed.body)
		}
	}
	const replayed = `quittance_list_reads_total{reason="replayed",server="standby"} `
	for n := 0; n < 20 || strings.Contains(metricsOf(t, bases[0])+metricsOf(t, bases[1]), "\n"+replayed+"0\n"); n++ {
		createAndList(n)
	}
	expect.OK(t, standby.Kill(t.Context()))
	for n := range 4 {
		createAndList(n)
	}
	for _, base := range bases {
		if a := ask(t, http.MethodGet, base+"/readyz", ""); a.status != http.StatusOK {
			t.Errorf("without the standby: %d %s", a.status, a.body)
		}
		metricsOf(t, base, "quittance_ready 1")
	}
}

func stopCluster(t *testing.T, c *dbtest.Cluster) {
	t.Helper()
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
}
