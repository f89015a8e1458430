package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/access"
)

// TestSavedFilters saves a filter, uses it, and removes it. Others do not see it.
func TestSavedFilters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	maria, other := w.person("acme", access.Finance), w.person("acme", access.Finance)
	page := maria.get("/dashboard/invoices?status=open&reference=a%26b").want(t, http.StatusOK, "Keep this filter")
	kept := maria.submit(page, "/dashboard/filters/save", url.Values{"name": {" Mine <b> "}}).want(t, http.StatusOK, "Remove “Mine <b>”")
	if kept.path != "/dashboard/invoices?reference=a%26b&status=open" {
		t.Errorf("the filter leads to %s", kept.path)
	}
	page = maria.get("/dashboard/invoices").want(t, http.StatusOK, "Mine <b>")
	if links := strings.Join(page.links(), " "); !strings.Contains(links, kept.path) {
		t.Errorf("the list has the links %s", links)
	}
	if words := maria.get("/dashboard/payments").words() + other.get("/dashboard/invoices").words(); strings.Contains(words, "Mine") {
		t.Error("another list or person has the filter")
	}
	other.post("/dashboard/filters/remove", url.Values{"list": {"/dashboard/invoices"}, "name": {"Mine <b>"}})
	kept = maria.get(kept.path).want(t, http.StatusOK, "Remove “Mine <b>”")
	if page := maria.submit(kept, "/dashboard/filters/remove", nil).want(t, http.StatusOK); strings.Contains(page.words(), "Mine") {
		t.Error("the filter was not removed")
	}
	operator := w.operator.get("/dashboard/payments?merchantId=acme&show=counted")
	if got := w.operator.submit(operator, "/dashboard/filters/save?merchantId=acme", url.Values{"name": {"Counted"}}).want(t, http.StatusOK); got.path != "/dashboard/payments?merchantId=acme&show=counted" {
		t.Errorf("the operator's filter leads to %s", got.path)
	}
}

// TestRefusedFilters tries to save filters without a name, of an unknown list, with unknown
// parameters, and more than permitted.
func TestRefusedFilters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	maria := w.person("acme", access.Finance)
	const list = "/dashboard/invoices"
	save := func(list, name, query string) answer {
		return maria.post("/dashboard/filters/save", url.Values{"list": {list}, "name": {name}, "query": {query}})
	}
	save(list, "  ", "status=open").want(t, http.StatusBadRequest, "A name has 1 to 60 characters.")
	save(list, strings.Repeat("é", 61), "status=open").want(t, http.StatusBadRequest, "A name has 1 to 60 characters.")
	save(list, "none", "unknown=1&cursor=x").want(t, http.StatusBadRequest, "Choose a filter first.")
	save("/api/keys", "keys", "status=open").want(t, http.StatusBadRequest)
	if got := save(list, "x", "status=open&next=//evil.example"); got.path != list+"?status=open" {
		t.Errorf("the filter leads to %s", got.path)
	}
	for i := range access.MaxSavedFilters - 1 {
		save(list, fmt.Sprint(i), "status=open").want(t, http.StatusOK)
	}
	save(list, "x", "status=paid").want(t, http.StatusOK, "Remove “x”")
	save(list, "one more", "status=open").want(t, http.StatusConflict, "You have 20 filters")
	save("/dashboard/refunds", "of another list", "status=seen")
}
