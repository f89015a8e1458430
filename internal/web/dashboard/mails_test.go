package dashboard_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/mailer"
)

// letterbox takes mails, except for nobody.
type letterbox struct{}

func (letterbox) Send(_ context.Context, _, recipient string, _ mailer.Message) error {
	if strings.HasPrefix(recipient, "nobody@") {
		return &mailer.RefusedError{Err: &mailer.AnswerError{Text: "550 no <b>such</b> user"}}
	}
	return nil
}

// TestSendInvoice sends an invoice to the customer, with the merchant's reminders and with others.
func TestSendInvoice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operator.api("POST", "/api/merchants", member{"id": "initech", "name": "Initech", "reminderHours": []int{-24, 72}}, nil)
	owner := w.person("initech", access.Admin)
	page := owner.get("/dashboard/settings").want(t, http.StatusOK)
	if refused := owner.submit(page, "/dashboard/settings", url.Values{"before": {"721"}}).want(t, http.StatusBadRequest, "up to 5 whole numbers"); !strings.Contains(refused.body, `value="721"`) {
		t.Error("what was typed is lost")
	}
	page = owner.submit(page, "/dashboard/settings", url.Values{"before": {"2, 1"}, "after": {"3"}}).want(t, http.StatusOK)
	if !strings.Contains(page.body, `value="2, 1"`) || !strings.Contains(page.body, `value="3"`) {
		t.Errorf("the settings are %s", page.words())
	}
	path := "/dashboard/invoices/" + w.invoice("initech", member{"customer": member{"email": "maria@example.com"}, "expiresAt": w.now().Add(9 * time.Hour).Unix()}).ID
	page = owner.get(path).want(t, http.StatusOK, "Replies go to your contact address")
	owner.submit(page, path+"/send", url.Values{"after": {"x"}}).want(t, http.StatusBadRequest, "up to 5 whole numbers")
	owner.submit(page, path+"/send", url.Values{"email": {"maria"}}).want(t, http.StatusConflict, "Email must be an e-mail address")
	owner.submit(page, path+"/send", url.Values{"language": {"de"}, "before": {""}}).want(t, http.StatusOK, "maria@example.com", "Reminder", "waiting")
	w.await("mail", func() bool { return strings.Contains(owner.get(path).words(), "Invoice sent by e-mail") })
	page = owner.submit(owner.get(path).want(t, http.StatusOK, "taken by the mail server"), path+"/reminders/drop", nil).want(t, http.StatusOK)
	if strings.Contains(page.words(), "waiting") {
		t.Errorf("a reminder is left: %s", page.words())
	}
	owner.submit(page, path+"/send", url.Values{"email": {"nobody@example.com"}}).want(t, http.StatusOK, "nobody@example.com")
	w.await("refusal", func() bool { return strings.Contains(owner.get(path).words(), "550 no <b>such</b> user") })
	owner.get(path).want(t, http.StatusOK, "not delivered", "Mail not delivered")
	owner.submit(page, path+"/void", nil).want(t, http.StatusOK)
	owner.submit(page, path+"/send", url.Values{"email": {"maria@example.com"}}).want(t, http.StatusConflict, "This invoice is not open, or")
	w.person("initech", access.Support).post(path+"/send", url.Values{"email": {"a@example.com"}}).want(t, http.StatusForbidden)
}
