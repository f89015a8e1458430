package devtest

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/test/expect"
)

// Buy orders a cake from one of the example shops, pays, and waits until the order is paid.
func Buy(t testing.TB, w *World, shop string) {
	t.Helper()
	if status, _, _ := visit(t, http.MethodPost, shop+"/orders", url.Values{"product": {"tea"}}); status != http.StatusBadRequest {
		t.Errorf("an unknown product is answered with %d", status)
	}
	status, location, _ := visit(t, http.MethodPost, shop+"/orders", url.Values{"product": {"cake"}})
	_, invoice, found := strings.Cut(location, w.Info.BaseURL+"/checkout/")
	if status != http.StatusSeeOther || !found {
		t.Fatalf("an order is answered with %d and the location %q", status, location)
	}
	if status, _, body := visit(t, http.MethodGet, shop+"/orders/"+invoice, nil); status != http.StatusOK || !strings.Contains(body, `"open"`) {
		t.Errorf("before the payment the order is %s", body)
	}
	w.Pay(t, invoice)
	w.AwaitDelivery(t, invoice, apitypes.EventInvoicePaid)
	if _, _, body := visit(t, http.MethodGet, shop+"/orders/"+invoice, nil); !strings.Contains(body, `"paid"`) {
		t.Errorf("after the payment the order is %s", body)
	}
	if status, _, _ := visit(t, http.MethodGet, shop+"/orders/unknown", nil); status != http.StatusNotFound {
		t.Errorf("an unknown order is answered with %d", status)
	}
	if status, _, _ := visit(t, http.MethodPost, shop+"/webhooks", url.Values{"x": {"y"}}); status != http.StatusUnauthorized {
		t.Errorf("an unsigned webhook is answered with %d", status)
	}
}

// visit sends a form, and returns the response's status, location and body.
func visit(t testing.TB, method, target string, form url.Values) (status int, location, body string) {
	t.Helper()
	r := expect.Must(http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(form.Encode())))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultTransport.RoundTrip(r)
	expect.OK(t, err)
	text, err := io.ReadAll(response.Body)
	expect.OK(t, errors.Join(err, response.Body.Close()))
	return response.StatusCode, response.Header.Get("Location"), string(text)
}
