package dashboard_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/server"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/identitytest"
	"github.com/quittance/quittance/internal/web/dashboard"
)

// office is the base of the dashboard's addresses in mails.
const office = "http://office.example"

// letter is a mail that a server took.
type letter struct {
	recipient string
	mailer.Message
}

// postOffice is a server for mails.
type postOffice struct {
	sent    chan letter
	notices chan letter // about requests for approval
	broken  atomic.Bool
}

func (o *postOffice) Send(_ context.Context, _, recipient string, m mailer.Message) error {
	if o.broken.Load() {
		return errors.New("out of order")
	}
	to := o.sent
	if strings.Contains(m.Text, "/dashboard/approvals") {
		to = o.notices
	}
	to <- letter{recipient, m}
	return nil
}

// newPostOffice returns a server for mails, and a change of a world that uses it.
func newPostOffice() (*postOffice, func(*server.Config)) {
	o := &postOffice{sent: make(chan letter, 10), notices: make(chan letter, 100)}
	return o, func(c *server.Config) { c.SMTP, c.DashboardURL = o, office }
}

var mailedPage = regexp.MustCompile(`http://[^/]+(/dashboard\S+)`)

// page waits for a mail to an address, and returns the page that it leads to.
func (o *postOffice) page(t *testing.T, recipient string, texts ...string) string {
	t.Helper()
	var got letter
	select {
	case got = <-o.sent:
	case <-time.After(patience):
		t.Fatalf("no mail to %s", recipient)
	}
	found := mailedPage.FindStringSubmatch(got.Text)
	if got.recipient != recipient || found == nil || !strings.Contains(got.HTML, "href=") {
		t.Fatalf("the mail is to %s, and says %s", got.recipient, got.Text)
	}
	for _, text := range texts {
		if !strings.Contains(got.Subject+got.Text, text) {
			t.Errorf("the mail lacks %q:\n%s\n%s", text, got.Subject, got.Text)
		}
	}
	return found[1]
}

// invites invites a person as a role, and returns the page of the invitation.
func (p *person) invites(o *postOffice, email, role string) string {
	p.t.Helper()
	form := p.get("/dashboard/keys/new?for=person").want(p.t, http.StatusOK, "A mail with a link goes to this address")
	p.submit(form, "/dashboard/keys", url.Values{"name": {"Ada"}, "email": {email}, "role": {role}}).want(p.t, http.StatusOK, "Invited", strings.ToLower(email))
	return o.page(p.t, strings.ToLower(email), "Invitation to", "invites you")
}

// enter presses the button of a mailed page.
func (p *person) enter(page string) answer {
	p.t.Helper()
	for range 2 { // a scanner has opened it before
		if policy := p.get(page).want(p.t, http.StatusOK).header.Get("Referrer-Policy"); policy != "strict-origin" {
			p.t.Errorf("the page with a token has the policy %q", policy)
		}
	}
	path, _, _ := strings.Cut(page, "?")
	return p.submit(p.get(page), path, nil)
}

// linkTo returns the address of the link with a text.
func (a answer) linkTo(t *testing.T, text string) string {
	t.Helper()
	for _, e := range a.Named("a") {
		if e.Words() == text {
			return e.Attrs["href"]
		}
	}
	t.Fatalf("%s has no link %q:\n%s", a.path, text, a.Words())
	return ""
}

// TestPeople invites a person to two merchants, switches between them, and ends a membership.
func TestPeople(t *testing.T) {
	t.Parallel()
	mails, withMails := newPostOffice()
	w := newWorld(t, withMails)
	owners := make(map[string]*person)
	for _, id := range []string{"cafe", "bistro"} {
		w.operator.api("POST", "/api/merchants", apitypes.CreateMerchantRequest{ID: id, Name: "The " + id}, nil)
		owners[id] = w.person(id, access.Admin)
	}
	owners["cafe"].get("/dashboard").want(t, http.StatusOK, "The cafe", "maria", "Owner")
	const missing = "passkeys a dashboardUrl"
	if withoutMails := newWorld(t); !strings.Contains(withoutMails.operator.get("/dashboard/keys").Words(), missing) ||
		strings.Contains(withoutMails.person("acme", access.Admin).get("/dashboard/keys").Words(), missing) || strings.Contains(w.operator.get("/dashboard/keys").Words(), missing) {
		t.Error("not the operator alone is told what is missing to sign in")
	}
	ada := w.guest()
	ada.key = "none" // her addresses keep the merchant
	page := owners["cafe"].invites(mails, "Ada@Example.com", "finance")
	ada.enter(page).want(t, http.StatusOK, "The cafe", "Ada", "Finance")
	w.guest().get(page).want(t, http.StatusNotFound, "expired, or was used")
	w.guest().post("/dashboard/invitation", url.Values{"token": {strings.TrimPrefix(page, "/dashboard/invitation?token=")}}).want(t, http.StatusNotFound)
	if len(ada.get("/dashboard").Classed("switch")) > 0 {
		t.Error("a person with one merchant can switch")
	}
	passedOn := w.guest()
	passedOn.enter(owners["bistro"].invites(mails, "ada@example.com", "finance")).want(t, http.StatusOK, "Sign in") // who is not the person at the cafe
	passedOn.get("/dashboard?merchantId=cafe").want(t, http.StatusOK, "Sign in")
	ada.get("/dashboard?merchantId=bistro").want(t, http.StatusOK, "The bistro", "Finance")
	ada.enter(owners["bistro"].invites(mails, "ada@example.com", "owner")).want(t, http.StatusOK, "The bistro", "Owner", "The cafe")

	const atBistro, atCafe = "?merchantId=bistro", "?merchantId=cafe"
	ada.get("/dashboard"+atCafe).want(t, http.StatusOK, "Finance")
	ada.get("/dashboard/keys"+atCafe).want(t, http.StatusForbidden)
	ada.get("/dashboard/invoices?merchantId=acme").want(t, http.StatusNotFound)
	for _, path := range []string{"/dashboard", "/dashboard/settings", "/dashboard/keys", "/dashboard/invoices", "/dashboard/invoices/new", "/dashboard/events", "/dashboard/webhook", "/dashboard/sessions"} {
		page := ada.get(path+atBistro).want(t, http.StatusOK, "The bistro")
		for _, address := range append(page.Links(), page.Actions()...) {
			if strings.HasPrefix(address, "/dashboard") && !strings.Contains(address, "merchantId=") && !slices.Contains([]string{"/dashboard/language", "/dashboard/sign-out"}, address) {
				t.Errorf("%s leads to %s, which is of another merchant", path, address)
			}
		}
	}
	ada.submit(ada.get("/dashboard/settings"+atBistro), "/dashboard/settings"+atBistro, url.Values{"name": {"Chez Ada"}}).want(t, http.StatusOK, "Chez Ada")
	ada.get("/dashboard"+atCafe).want(t, http.StatusOK, "The cafe")
	if got := ada.submit(ada.get("/dashboard/settings"+atBistro), "/dashboard/language", url.Values{"language": {"en"}}); got.path != "/dashboard/settings"+atBistro {
		t.Errorf("another language leads to %s", got.path)
	}

	keys := ada.get("/dashboard/keys"+atBistro).want(t, http.StatusOK, "Ada")
	own := keys.linkTo(t, "Ada")
	if page := ada.get(own).want(t, http.StatusOK, "Revoke"); len(page.Actions()) == 0 || strings.Contains(page.Words(), "Replace") {
		t.Errorf("the page of a membership has\n%s", page.Words())
	}
	w.operator.post(strings.ReplaceAll(own, atBistro, "")+"/link", nil).want(t, http.StatusConflict, "belongs to a person")
	owners["bistro"].post(strings.ReplaceAll(own, atBistro, "")+"/revoke", nil).want(t, http.StatusOK)
	ada.get("/dashboard"+atBistro).want(t, http.StatusNotFound)
	ada.get("/dashboard").want(t, http.StatusOK, "The cafe")
	cafes := owners["cafe"].get("/dashboard/keys").linkTo(t, "Ada")
	owners["cafe"].post(cafes+"/revoke", nil).want(t, http.StatusOK)
	ada.get("/dashboard").want(t, http.StatusOK, "Sign in")

	olga := w.guest()
	olga.enter(w.operator.invites(mails, "olga@example.com", "finance")).want(t, http.StatusOK, "Finance", "Operator")
	olga.enter(owners["cafe"].invites(mails, "olga@example.com", "owner")).want(t, http.StatusOK, "The cafe", "Owner")
	olga.get(olga.get("/dashboard"+atCafe).linkTo(t, "Operator")).want(t, http.StatusOK, "Finance")
}

// TestStalePage sends a form that was opened for a merchant after another session began in the same browser.
func TestStalePage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const path = "/dashboard/webhook"
	acme, globex, browser := w.person("acme", access.Admin), w.person("globex", access.Admin), w.guest()
	browser.key = acme.key // its addresses keep the merchant
	for key, opened := range map[string]string{acme.key: path, w.operator.key: path + "?merchantId=acme"} {
		browser.post("/dashboard/sign-in", url.Values{"key": {key}}).want(t, http.StatusOK)
		page := browser.get(opened).want(t, http.StatusOK, "acme")
		browser.post("/dashboard/sign-in", url.Values{"key": {globex.key}}).want(t, http.StatusOK)
		browser.submit(page, path+"?merchantId=acme", url.Values{"url": {"https://acme.example/hook"}}).want(t, http.StatusNotFound)
		if status, text := globex.ask("GET", "/api/merchants/globex/webhook", nil); status != http.StatusNotFound {
			t.Errorf("globex has the endpoint %d %s", status, text)
		}
	}
}

// TestSignInByMail signs a person in by mail, refuses what nobody asked for, and confirms by mail.
func TestSignInByMail(t *testing.T) {
	t.Parallel()
	mails, withMails := newPostOffice()
	w := newWorld(t, withMails)
	owner := w.person("acme", access.Admin)
	owner.get("/dashboard/keys").want(t, http.StatusOK)
	page := owner.invites(mails, "ada@example.com", "owner")
	const mailPath = "/dashboard/sign-in/mail"
	ada := w.guest()
	asks := func(email, next string) answer {
		return w.guest().post(mailPath, url.Values{"email": {email}, "next": {next}})
	}
	asks("ada@example.com", "").want(t, http.StatusOK, "a mail with a link is on its way") // an invitation is no membership
	ada.enter(page).want(t, http.StatusOK, "Ada")
	ada.get("/dashboard/keys/new?for=person").want(t, http.StatusOK, "Is it still you?") // the invitation may have been passed on
	asks("Ada <ada@example.com>", "").want(t, http.StatusBadRequest, "This is not an e-mail address")
	unknown, known := asks("eve@example.com", ""), asks("ADA@example.com", "/dashboard/invoices")
	if unknown.Words() != known.Words() || known.status != http.StatusOK {
		t.Errorf("the answers are\n%s\nand\n%s", unknown.Words(), known.Words())
	}
	link := mails.page(t, "ada@example.com", "Sign in to office.example")
	again := w.guest()
	again.get(link).want(t, http.StatusOK, "This link signs you in once. Ada · acme")
	again.enter(link).want(t, http.StatusOK, "Invoices", "Ada")
	w.operator.get("/dashboard/operator/audit?action=session.link").want(t, http.StatusOK, "127.0.0.1")
	w.guest().post("/dashboard/sign-in", url.Values{"link": {strings.TrimPrefix(strings.Split(link, "&")[0], "/dashboard/sign-in?link=")}}).want(t, http.StatusUnauthorized, "was used before")
	w.guest().get(link).want(t, http.StatusUnauthorized, "was used before", "Send me a link")

	w.forward(dashboard.MailWindow)
	w.forgetConfirmations()
	refused := again.post("/dashboard/keys", url.Values{"for": {"person"}, "name": {"Eve"}, "email": {"eve@example.com"}, "role": {"owner"}}).want(t, http.StatusOK, "Is it still you?", "Sign in again")
	again.submit(refused, mailPath, nil).want(t, http.StatusOK, "on its way")
	again.enter(mails.page(t, "ada@example.com")).want(t, http.StatusOK, "People and keys")
	for range dashboard.MailsOfPerson {
		asks("eve@example.com", "").want(t, http.StatusOK)
	}
	asks("eve@example.com", "").want(t, http.StatusTooManyRequests, "Too many requests")

	mails.broken.Store(true)
	form := again.get("/dashboard/keys/new?for=person").want(t, http.StatusOK)
	again.submit(form, "/dashboard/keys", url.Values{"name": {"Bob"}, "email": {"bob@example.com"}, "role": {"finance"}}).want(t, http.StatusBadRequest, "The mail could not be sent")
	mails.broken.Store(false)
	bob := again.invites(mails, "bob@example.com", "finance")
	listed := again.get("/dashboard/keys")
	for _, action := range listed.Actions() {
		if strings.HasSuffix(action, "/withdraw") {
			again.submit(listed, action, nil).want(t, http.StatusOK)
		}
	}
	w.guest().get(bob).want(t, http.StatusNotFound)
}

// TestExtraPasskeys adds a passkey in a browser, connects an account, signs in with the passkey, and confirms a
// dangerous change.
func TestExtraPasskeys(t *testing.T) {
	t.Parallel()
	mails, withMails := newPostOffice()
	var base string
	var remote *identitytest.Provider
	w := newWorld(t, withMails, withProvider(t, &remote), func(c *server.Config) {
		_, port, err := net.SplitHostPort(c.Listeners[0].Addr().String())
		expect.OK(t, err)
		base = "http://localhost:" + port // a passkey needs a host name
		c.DashboardURL = base
	})
	w.url = base
	ada := w.guest()
	ada.enter(w.person("acme", access.Admin).invites(mails, "ada@example.com", "owner")).want(t, http.StatusOK, "Ada")
	refused := ada.get("/dashboard/passkeys/new").want(t, http.StatusOK, "Sign in again") // the invitation may have been passed on
	ada.submit(refused, "/dashboard/sign-in/mail", nil).want(t, http.StatusOK, "on its way")
	ada.enter(mails.page(t, "ada@example.com"))
	d := ada.at(t)
	d.AddAuthenticator()
	d.open("/dashboard/passkeys/new")
	d.fill("[name=name]", "Laptop")
	d.Press("Add a passkey")
	d.AwaitPath("/dashboard/sessions")
	d.AwaitText("main", "Laptop")
	mails.page(t, "ada@example.com", "A new way to sign in to localhost", "“Laptop” now signs you in")
	d.Press("Connect an account")
	d.AwaitText("main", "Connected")
	mails.page(t, "ada@example.com", "“Example” now signs you in")
	d.Press("Sign out")
	d.AwaitPath("/dashboard/sign-in")
	d.Press("Sign in with a passkey")
	d.AwaitText("header", "Ada")
	w.forgetConfirmations()
	d.open("/dashboard/keys/new?for=program")
	d.AwaitText("main", "Use your passkey")
	d.Press("Use the passkey")
	d.AwaitPath("/dashboard/keys/new")
	d.isQuiet(t)
}
