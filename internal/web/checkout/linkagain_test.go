package checkout

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// TestLinkAgain expects the page of an expired invoice to lead back to its payment link,
// unless that is archived or money has arrived.
func TestLinkAgain(t *testing.T) {
	for _, test := range []struct {
		name string
		set  func(*world, *fakeLinks)
		want string
	}{
		{"expired", func(*world, *fakeLinks) {}, "/pay/corner-cafe/espresso"},
		{"a free amount", func(_ *world, f *fakeLinks) { f.link.Amount = invoice.Amount{} }, "/pay/corner-cafe/espresso?amount=4.90"},
		{"open", func(w *world, _ *fakeLinks) { w.invoice.Status = invoice.Open }, ""},
		{"void", func(w *world, _ *fakeLinks) { w.invoice.Status = invoice.Void }, ""},
		{"of no link", func(w *world, _ *fakeLinks) { w.invoice.Details.Metadata = nil }, ""},
		{"of a link that is archived", func(_ *world, f *fakeLinks) { f.link.Archived = true }, ""},
		{"paid too late", func(w *world, _ *fakeLinks) {
			w.payments = []invoice.Payment{payment(4_900_123, 11, expires+9, invoice.Confirmed)}
			w.settled()
		}, ""},
	} {
		w, f := newWorld(), newFakeLinks()
		w.invoice.Status, w.invoice.Details.Metadata = invoice.Expired, map[string]string{invoice.MetadataPaymentLink: f.link.ID}
		test.set(w, f)
		conf := w.config()
		conf.Links, conf.Rand, conf.Now = f, new(bytes.Reader), func() time.Time { return time.Unix(w.now, 0) }
		answer := httptest.NewRecorder()
		handlerOf(New(conf)).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://pay.example/checkout/"+testID, nil))
		links := parsePage(t, answer.Body.String()).id(t, "again").named("a")
		got := ""
		if len(links) > 0 {
			got = links[0].attrs["href"]
		}
		if got != test.want {
			t.Errorf("%s: it leads to %q, want %q", test.name, got, test.want)
		}
	}
}
