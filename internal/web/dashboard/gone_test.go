package dashboard

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/quittance/quittance/apitypes"
)

// TestListsContinueAfterARestore reads a list with a cursor from before a restore.
func TestListsContinueAfterARestore(t *testing.T) {
	t.Parallel()
	s := service{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if cursor := r.URL.Query().Get("cursor"); cursor != "new" {
			w.WriteHeader(http.StatusGone)
			_, _ = fmt.Fprintf(w, `{"code":"cursor_gone","after":"new","detail":%q}`, cursor)
			return
		}
		_, _ = w.Write([]byte(`{"events":[{"merchantId":"acme"}]}`))
	})}
	var list apitypes.EventList
	if err := s.get(t.Context(), "/api/events", url.Values{"cursor": {"old"}}, &list); err != nil || len(list.Events) != 1 {
		t.Errorf("got %+v, %v", list, err)
	}
	if err := s.get(t.Context(), "/api/events", url.Values{"after": {"old"}}, &list); err == nil {
		t.Error("without a cursor there is no error")
	}
}
