package webhook_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/quittance/quittance/webhook"
)

func ExampleSign() {
	sentAt := time.Unix(1700000000, 0)
	fmt.Println(webhook.Sign("whsec_4e1b0f6c9d2a7385", sentAt, []byte(`{}`)))
	// Output: t=1700000000,v1=127cbaf1787c7446ba8c0063329f11afcee82df4c95d5684fe221531b3ccb08a
}

func ExampleVerify() {
	header := "t=1700000000,v1=127cbaf1787c7446ba8c0063329f11afcee82df4c95d5684fe221531b3ccb08a"
	now := time.Unix(1700000010, 0)

	fmt.Println(webhook.Verify("whsec_4e1b0f6c9d2a7385", header, []byte(`{}`), now))

	err := webhook.Verify("whsec_4e1b0f6c9d2a7385", header, []byte(`{"forged":true}`), now)
	var refused *webhook.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.Code())
	}
	// Output:
	// <nil>
	// bad_signature
}

func ExampleHandler() {
	const secret = "whsec_4e1b0f6c9d2a7385"
	hooks := webhook.Handler(secret, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		event, err := webhook.ParseEvent(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if event.Type == webhook.InvoicePaid { // and event.ID was not handled before
			fmt.Println("ship the goods:", event.ID)
		}
		w.WriteHeader(http.StatusNoContent)
	}))

	body := `{"id":"evt_1","type":"invoice.paid","createdAt":1700000000,"data":{"invoice":{}}}`
	r := httptest.NewRequest(http.MethodPost, "/hooks", strings.NewReader(body))
	r.Header.Set(webhook.HeaderSignature, webhook.Sign(secret, time.Now(), []byte(body)))
	w := httptest.NewRecorder()
	hooks.ServeHTTP(w, r)
	fmt.Println(w.Code)
	// Output:
	// ship the goods: evt_1
	// 204
}

// During a rotation the receiver accepts both secrets, until the sender has stopped using the old one.
func ExampleVerifier() {
	verifier := webhook.Verifier{
		Secrets: []string{"whsec_new", "whsec_old"},
		Now:     func() time.Time { return time.Unix(1700000000, 0) },
	}
	body := []byte(`{}`)
	fmt.Println(verifier.Verify(webhook.Sign("whsec_old", time.Unix(1700000000, 0), body), body))
	// Output: <nil>
}
