package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/http"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// postOffice is an SMTP server that has no mailbox of nobody. It sends each mail that it takes to the channel.
type postOffice chan *mail.Message

// NewSession implements smtp.Backend.
func (p postOffice) NewSession(*smtp.Conn) (smtp.Session, error) { return p, nil }

func (p postOffice) Reset()                               {}
func (p postOffice) Logout() error                        { return nil }
func (p postOffice) Mail(string, *smtp.MailOptions) error { return nil }

func (p postOffice) Rcpt(to string, _ *smtp.RcptOptions) error {
	if strings.HasPrefix(to, "nobody@") {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "<" + to + ">: no <b>such</b> user"}
	}
	return nil
}

func (p postOffice) Data(r io.Reader) error {
	m, err := mail.ReadMessage(r)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	m.Body = strings.NewReader(string(body))
	p <- m
	return err
}

// open starts the server, and returns how mails reach it.
func (p postOffice) open(t *testing.T) *mailer.SMTP {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	expect.OK(t, err)
	s := smtp.NewServer(p)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(listener) }()
	t.Cleanup(func() { expect.NoError(t, errors.Join(s.Close(), <-ended)) })
	at := listener.Addr().(*net.TCPAddr)
	return &mailer.SMTP{Host: "127.0.0.1", Port: at.Port, Encryption: mailer.NoTLS, From: mail.Address{Name: "Pay", Address: "pay@pay.example"}, Now: time.Now}
}

// subject returns the subject of the next mail, and its body.
func (p postOffice) next(t *testing.T) (subject, body string, m *mail.Message) {
	t.Helper()
	m = <-p
	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	expect.OK(t, err)
	text, err := io.ReadAll(m.Body)
	expect.OK(t, err)
	return subject, string(text), m
}

// bounceOf returns what Postfix sends to the sender of a mail.
func bounceOf(action, id string) string {
	return strings.ReplaceAll(`From: MAILER-DAEMON@mx.example (Mail Delivery System)
Content-Type: multipart/report; report-type=delivery-status; boundary="4RgKqW5bVgz1T4.1796033564/mx.example"

--4RgKqW5bVgz1T4.1796033564/mx.example
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example

Final-Recipient: rfc822; gone@example.com
Action: `+action+`
Status: 5.1.1
Diagnostic-Code: smtp; 550 5.1.1 <gone@example.com>: User unknown
    in virtual mailbox table

--4RgKqW5bVgz1T4.1796033564/mx.example
Content-Type: text/rfc822-headers

Message-ID: `+id+`

--4RgKqW5bVgz1T4.1796033564/mx.example--
`, "\n", "\r\n")
}

// TestMails sends invoices through a service and an SMTP server of another author: the invoice, a reminder, one that a
// payer stops, one to a mailbox that does not exist, and one that comes back.
func TestMails(t *testing.T) {
	t.Parallel()
	office := make(postOffice, 10)
	chain, _ := scripted(t, "house", 7)
	listeners, database := listenOn(t, Address{}), dbtest.Migrated(t)
	base := "http://" + listeners[0].Addr().String()
	past := time.Now().Add(-30 * time.Hour).UnixMilli() // an outage, of which the schedule's clock counts an hour
	expect.Success(t)(dbtest.SQL(t, database).ExecContext(t.Context(), "INSERT INTO schedule_clock (id, now_ms, source_ms) VALUES (1, $1, $1)", past))
	startServer(t, Config{Database: database, Listeners: listeners, PublicURL: base, Chains: []Chain{chain}, Merchants: Merchants{AcceptAll: true}, SMTP: office.open(t)})
	await(t, base, "readiness", func(status int, h health) bool { return status == http.StatusOK && h.Chains[0].Confirmed > 0 })
	create := func() string {
		var made apitypes.CreateInvoiceResponse
		if a := createFor(t, base, "acme", "house"); json.Unmarshal([]byte(a.body), &made) != nil || a.status != http.StatusCreated {
			t.Fatalf("create: %d %s", a.status, a.body)
		}
		return made.ID
	}
	send := func(id, body string, status int, says ...string) {
		t.Helper()
		a := ask(t, http.MethodPost, base+"/api/invoices/"+id+"/mails", body)
		for _, text := range says {
			if !strings.Contains(a.body, text) {
				t.Errorf("the answer lacks %s: %s", text, a.body)
			}
		}
		if a.status != status {
			t.Fatalf("send %s: %d %s, want %d", body, a.status, a.body, status)
		}
	}
	first := create()
	send(first, `{}`, http.StatusBadRequest, `"field":"email"`)
	send(first, `{"email":"maria"}`, http.StatusBadRequest, `"field":"email"`)
	send(first, `{"email":"maria@example.com","language":"xx"}`, http.StatusBadRequest, `"field":"language"`, "en, ar, de")
	send(first, `{"email":"maria@example.com","reminderHours":[0]}`, http.StatusBadRequest, `"field":"reminderHours"`)
	send(first, `{"email":"maria@example.com","language":"de","reminderHours":[1,2]}`, http.StatusNoContent)
	subject, body, m := office.next(t)
	link := regexp.MustCompile(regexp.QuoteMeta(base) + `/checkout/` + first + `\?lang=de`).FindString(body)
	if subject != "Rechnung von acme: 1,00\u00a0USDC" || m.Header.Get("To") != "<maria@example.com>" || link == "" || m.Header.Get("List-Unsubscribe-Post") != "List-Unsubscribe=One-Click" {
		t.Fatalf("the mail is %q %v\n%s", subject, m.Header, body)
	}
	if page := ask(t, http.MethodGet, link, ""); page.status != http.StatusOK || !strings.Contains(page.body, `lang="de"`) {
		t.Errorf("the link leads to %d %s", page.status, page.body)
	}
	awaitBody(t, base+"/api/invoices/"+first+"/mails", `"state":"sent"`)
	awaitBody(t, base+"/api/invoices/"+first+"/timeline", `"kind":"mail.invoice"`)
	awaitBody(t, base+"/api/invoices/"+first, `"email":"maria@example.com"`) // it is the customer's now
	returned := create()
	send(returned, `{"email":"gone@example.com","reminderHours":[2]}`, http.StatusNoContent)
	_, _, m = office.next(t)
	awaitBody(t, base+"/api/invoices/"+returned+"/mails", `"state":"sent"`)
	report := func(message string, status int, says string) {
		t.Helper()
		if a := ask(t, http.MethodPost, base+"/api/operator/mails/report", message); a.status != status || !strings.Contains(a.body, says) {
			t.Errorf("the report is answered %d %s, want %d %s", a.status, a.body, status, says)
		}
	}
	report("Subject: I am away\r\n\r\nUntil Monday.", http.StatusBadRequest, "message/delivery-status")
	report(bounceOf("failed", strings.Replace(m.Header.Get("Message-ID"), ".1.", ".2.", 1)), http.StatusNotFound, "not_found")
	report(bounceOf("delayed", m.Header.Get("Message-ID")), http.StatusOK, `"bounced":false`)
	report(strings.Repeat("x", mailer.MaxReport+1), http.StatusRequestEntityTooLarge, "body_too_large")
	for range 2 {
		report(bounceOf("failed", m.Header.Get("X-Quittance-Mail")), http.StatusOK, `"bounced":true,"error":"550 5.1.1 `)
		for path, shows := range map[string]string{"/mails": `"state":"canceled"`, "/timeline": `"kind":"mail.invoice"`} {
			for _, text := range []string{shows, `550 5.1.1 <…>: User unknown`, map[string]string{"/mails": `"bouncedAt":`, "/timeline": `"kind":"mail.bounced"`}[path]} {
				if a := ask(t, http.MethodGet, base+"/api/invoices/"+returned+path, ""); !strings.Contains(a.body, text) {
					t.Errorf("%s lacks %s: %s", path, text, a.body)
				}
			}
		}
	}

	lost := create()
	send(lost, `{"email":"nobody@example.com"}`, http.StatusNoContent)
	awaitBody(t, base+"/api/invoices/"+lost+"/mails", `"state":"failed"`)
	awaitBody(t, base+"/api/invoices/"+lost+"/timeline", `"kind":"mail.failed"`)
	awaitBody(t, base+"/api/invoices/"+lost+"/timeline", `550 5.1.1 `)
	metricsOf(t, base, `quittance_mails_total{result="sent"} 2`, `quittance_mails_total{result="recipient"} 1`, `quittance_mails_total{result="refused"} 0`, `quittance_mails_total{result="failed"} 0`)

	due := func(hours int, id string) (at int64) { // makes a reminder due, and another mail wakes the mailer
		t.Helper()
		at = time.Now().Unix()
		expect.Success(t)(dbtest.SQL(t, database).ExecContext(t.Context(), "UPDATE mails SET due_at = $1, send_at = $1, hours = $2 WHERE kind = 'reminder' AND invoice_id = $3 AND hours = 2", at, hours, id))
		send(create(), `{"email":"other@example.com"}`, http.StatusNoContent)
		return at
	}
	due(-2, first)
	reminder, _, _ := office.next(t)
	other, _, _ := office.next(t)
	if both := []string{reminder, other}; !slices.Contains(both, "Invoice from acme: 1.00\u00a0USDC") ||
		!slices.ContainsFunc(both, func(s string) bool { return strings.HasPrefix(s, "Erinnerung: 1,00\u00a0USDC an acme") }) {
		t.Errorf("the mails are %q", both)
	}
	second := create()
	send(second, `{"email":"maria@example.com","reminderHours":[2]}`, http.StatusNoContent)
	_, _, m = office.next(t)
	awaitBody(t, base+"/api/invoices/"+second+"/mails", `"state":"sent"`)
	if a := ask(t, http.MethodPost, base+"/api/invoices/"+second+"/void", ""); a.status != http.StatusOK {
		t.Fatalf("void: %d %s", a.status, a.body)
	}
	send(second, `{}`, http.StatusConflict, "invoice_not_open")
	at := due(2, second)
	awaitBody(t, base+"/api/invoices/"+second+"/mails", fmt.Sprintf(`"state":"canceled","sendAt":%d,"attempts":1`, at)) // the mailer canceled it

	stop := strings.Trim(m.Header.Get("List-Unsubscribe"), "<>")
	if page := ask(t, http.MethodGet, stop, ""); page.status != http.StatusOK || !strings.Contains(page.body, "maria@example.com") {
		t.Errorf("the page of the mail is %d %s", page.status, page.body)
	}
	post := func(mediaType, body, says string) {
		t.Helper()
		a := ask(t, http.MethodPost, stop, body, func(r *http.Request) { r.Header.Set("Content-Type", mediaType) })
		if a.status != http.StatusOK || !strings.Contains(a.body, says) {
			t.Errorf("the form is answered %d %s", a.status, a.body)
		}
	}
	post("multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=\"List-Unsubscribe\"\r\n\r\nOne-Click\r\n--x--\r\n", "Wieder erlauben")
	awaitBody(t, base+"/api/invoices/"+first+"/mails", `"state":"stopped"`) // the second reminder
	third := create()
	send(third, `{"email":"Maria+shop@example.com"}`, http.StatusConflict, "recipient_stopped")
	post("application/x-www-form-urlencoded", "allow=1", "Diese Mails abbestellen")
	send(third, `{"email":"maria@example.com","reminderHours":[5]}`, http.StatusNoContent)
	awaitBody(t, base+"/api/invoices/"+third+"/mails", `"language":"de"`)
	awaitBody(t, base+"/api/invoices/"+third+"/mails", `"hours":5`)
	if a := ask(t, http.MethodDelete, base+"/api/invoices/"+third+"/mails", ""); a.status != http.StatusNoContent {
		t.Errorf("drop: %d %s", a.status, a.body)
	}
	if a := ask(t, http.MethodGet, base+"/api/invoices/"+third+"/mails", ""); strings.Contains(a.body, "reminder") {
		t.Errorf("the reminders are dropped: %s", a.body)
	}
	for _, path := range []string{"/mails/unknown", "/mails/%00"} {
		if page := ask(t, http.MethodGet, base+path, ""); page.status != http.StatusNotFound {
			t.Errorf("%s: %d", path, page.status)
		}
	}
}
