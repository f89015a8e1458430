package dashboard

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/identity"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
	"github.com/quittance/quittance/internal/test/webtest"
	"github.com/quittance/quittance/internal/web/checkout/locale"
	"github.com/quittance/quittance/internal/webhooks"
)

// TestNext leads only to pages of the dashboard after a sign-in.
func TestNext(t *testing.T) {
	t.Parallel()
	for asked, want := range map[string]string{
		"":                                "/dashboard",
		"/dashboard":                      "/dashboard",
		"/dashboard/invoices?status=paid": "/dashboard/invoices?status=paid",
		"/dashboard/sign-in":              "/dashboard",
		"/dashboard/sign-out":             "/dashboard",
		"https://evil.example/dashboard":  "/dashboard",
		"//evil.example/dashboard":        "/dashboard",
		"/\\evil.example/dashboard":       "/dashboard",
		"/dashboard\\@evil.example":       "/dashboard",
		"/dashboardevil":                  "/dashboard",
		"javascript:alert(1)":             "/dashboard",
		"/dashboard/\r\nX: y":             "/dashboard",
		"/dashboard/../api/keys":          "/dashboard",
		"/dashboard/%2e%2e/api/keys":      "/dashboard",
		"/dashboard//evil.example":        "/dashboard",
		"/dashboard/.":                    "/dashboard",
		"/api/keys":                       "/dashboard",
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/dashboard/sign-in?"+url.Values{"next": {asked}}.Encode(), nil)
		expect.Equal(t, next(r), want, "%q leads to", asked)
	}
}

// TestTemplatesParse parses the templates of every language.
func TestTemplatesParse(t *testing.T) {
	t.Parallel()
	for _, text := range texts().Languages() {
		if all := templatesIn(text, time.UTC); all.Lookup("signin.html") == nil || all.Lookup("layout") == nil || all.Lookup("main") != nil {
			t.Errorf("%s has the templates %v", text.Lang(), all.DefinedTemplates())
		}
	}
}

// TestConcerns wakes pages if an event or a change of their merchant or their invoice is recorded.
func TestConcerns(t *testing.T) {
	t.Parallel()
	event := func(merchantID, invoiceID string) webhooks.News {
		return webhooks.News{Events: []webhooks.EventRow{{Event: webhooks.Event{MerchantID: merchantID, InvoiceID: invoiceID}}}}
	}
	change := func(merchantID string, action access.Action, object string) webhooks.News {
		return webhooks.News{Changes: []access.ChangeRow{{MerchantID: merchantID, Action: action, Object: object}}}
	}
	operator, acme, one := &liveStream{}, &liveStream{merchant: "acme"}, &liveStream{merchant: "acme", invoice: "inv_1"}
	for name, c := range map[string]struct {
		news                 webhooks.News
		operator, acme, page bool
	}{
		"event of the invoice":     {event("acme", "inv_1"), true, true, true},
		"event of another one":     {event("acme", "inv_2"), true, true, false},
		"event of another":         {event("globex", "inv_1"), true, false, false},
		"event without a merchant": {event("", ""), true, false, false},
		"change of the invoice":    {change("acme", access.ActionInvoiceVoid, "inv_1"), true, true, true},
		"change of a refund":       {change("acme", access.ActionRefundCancel, "ref_1"), true, true, true},
		"change of another":        {change("globex", access.ActionRefundCancel, "ref_1"), true, false, false},
		"sign-in":                  {change("acme", access.ActionSessionBegin, "ses_1"), false, false, false},
		"key":                      {change("acme", access.ActionKeyCreate, "key_1"), false, false, false},
		"nothing":                  {webhooks.News{}, false, false, false},
	} {
		if got := [3]bool{operator.concerns(c.news), acme.concerns(c.news), one.concerns(c.news)}; got != [3]bool{c.operator, c.acme, c.page} {
			t.Errorf("%s wakes %v", name, got)
		}
	}
}

// TestReadAgain reads open pages again while they show unfinished deliveries. The longer a delivery is
// overdue, the less often the page is read.
func TestReadAgain(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	in := func(status apitypes.DeliveryStatus, seconds int64) eventRow {
		return eventRow{EventRecord: apitypes.EventRecord{Delivery: &apitypes.Delivery{Status: status, NextAttemptAt: now.Unix() + seconds}}}
	}
	under := in("pending", 0)
	under.Delivery.NextAttemptAt = 0
	for name, c := range map[string]struct {
		rows []eventRow
		want int64
	}{
		"none": {nil, 0}, "without a delivery": {[]eventRow{{}}, 0}, "over": {[]eventRow{in("delivered", 5), in("failed", 5)}, 0},
		"under way": {[]eventRow{under}, 3}, "due": {[]eventRow{in("pending", 0)}, 3}, "soon": {[]eventRow{in("pending", 20)}, 20},
		"overdue": {[]eventRow{in("pending", -20)}, 20}, "long overdue": {[]eventRow{in("pending", -7200)}, 60}, "far": {[]eventRow{in("pending", 86400)}, 3600},
		"several": {[]eventRow{in("pending", 300), in("pending", 30), in("delivered", 0)}, 30},
	} {
		expect.Equal(t, readAgain(now, c.rows...), c.want, "%s: after … s:", name)
	}
}

// TestShortCount adds up the counts of the inbox for the navigation.
func TestShortCount(t *testing.T) {
	t.Parallel()
	for want, counts := range map[string][]apitypes.InboxCount{
		"": {{Count: 0}}, "3": {{Count: 1}, {Count: 2}}, "99": {{Count: 99}}, "99+": {{Count: 60}, {Count: 40}},
	} {
		expect.Equal(t, shortCount(counts), want, "%v is", counts)
	}
	expect.Equal(t, shortCount([]apitypes.InboxCount{{Count: 5, More: true}}), "99+", "more than were counted is")
}

// TestMailLimits reaches the limits of mails to one address, and of one client network.
func TestMailLimits(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	l := newMailLimits(func() time.Time { return now })
	from := func(client string) context.Context {
		return limits.NewContext(t.Context(), netip.MustParseAddr(client))
	}
	for n := range MailsOfPerson + 1 {
		if err := l.take(from(fmt.Sprint("203.0.113.", n)), toSignIn, "ada@example.com"); (err != nil) != (n == MailsOfPerson) {
			t.Errorf("mail %d to an address: %v", n+1, err)
		}
	}
	for n := range MailsOfClient + 1 {
		if err := l.take(from("198.51.100.1"), toSignIn, fmt.Sprint(n, "@example.com")); (err != nil) != (n == MailsOfClient) {
			t.Errorf("mail %d of a client: %v", n+1, err)
		}
	}
	for n := range SignInsOfClient + 1 {
		if err := l.signIns.Take(from("198.51.100.1")); (err != nil) != (n == SignInsOfClient) {
			t.Errorf("sign-in %d of a client: %v", n+1, err)
		}
	}
	for n := range InvitationsOfMerchant + 1 {
		if err := l.merchants.Take("acme").Err(); (err != nil) != (n == InvitationsOfMerchant) {
			t.Errorf("invitation %d of a merchant: %v", n+1, err)
		}
	}
	now = now.Add(MailWindow / MailsOfPerson)
	if err := l.take(from("203.0.113.9"), toSignIn, "ada@example.com"); err != nil {
		t.Errorf("after a while: %v", err)
	}
	for _, kind := range []mailKind{toConfirm, toJoin} {
		if err := l.take(from("203.0.113.10"), kind, "ada@example.com"); err != nil {
			t.Errorf("sign-ins that strangers ask for use up the mails to %s: %v", kind, err)
		}
	}
	for kind, want := range map[mailKind]int{toSignIn: MailsOfPersonADay, toJoin: MailsOfPersonADay, toConfirm: 3 * MailsOfPersonADay} {
		sent := 0
		for n := range 3 * MailsOfPersonADay {
			now = now.Add(time.Second)
			l.people = newMailLimits(func() time.Time { return now }).people
			if l.take(from(fmt.Sprintf("203.0.%d.%d", n, len(kind))), kind, "eve@example.com") == nil {
				sent++
			}
		}
		if sent != want {
			t.Errorf("%d mails to %s in minutes, want %d", sent, kind, want)
		}
	}
	begun := 0
	for n := range 3 * SignInsOfClient {
		if l.signIns.Take(from(fmt.Sprintf("2001:db8:1:%x::1", n))) == nil {
			begun++
		}
	}
	expect.Equal(t, begun, limits.SiteWeight*SignInsOfClient, "the networks of a site begin … sign-ins:")
}

// TestCallbackLimit limits answers of a provider to browsers that have begun a sign-in. Pages of other hosts, which make
// browsers ask without the cookie, do not use it up.
func TestCallbackLimit(t *testing.T) {
	t.Parallel()
	now := func() time.Time { return time.Unix(1_000_000, 0) }
	d := New(Config{API: http.NotFoundHandler(), Sessions: new(access.SessionManager), Provider: identity.New(identity.Config{Now: now}), Now: now, Logger: slog.New(slog.DiscardHandler)})
	for n := range 2*SignInsOfClient + 1 {
		r := httptest.NewRequestWithContext(limits.NewContext(t.Context(), netip.MustParseAddr("198.51.100.1")), "GET", CallbackPath, nil)
		if n >= SignInsOfClient {
			r.AddCookie(&http.Cookie{Name: d.flowCookie(), Value: "flow=x"})
		}
		if err := d.endProvider(httptest.NewRecorder(), r); (err != nil) != (n == 2*SignInsOfClient) {
			t.Errorf("answer %d: %v", n+1, err)
		}
	}
}

// TestDaysOfZones checks in every zone that the days of filters follow each other without a gap, and
// that each day contains its begin.
func TestDaysOfZones(t *testing.T) {
	t.Parallel()
	zones := []string{"UTC", "Europe/Berlin", "America/Sao_Paulo", "Asia/Kathmandu", "Pacific/Apia", "Africa/Cairo", "America/Santiago"}
	rapid.Check(t, func(t *rapid.T) {
		zone, ok := invoice.ParseTimezone(rapid.SampledFrom(zones).Draw(t, "zone"))
		if !ok {
			t.Fatal("a zone is not known")
		}
		date := time.Unix(rapid.Int64Range(0, 4_000_000_000).Draw(t, "at"), 0).UTC()
		day, next := date.Format(time.DateOnly), date.AddDate(0, 0, 1).Format(time.DateOnly)
		if diff := cmp.Diff(dayText(next, false, zone), dayText(day, true, zone)); diff != "" {
			t.Fatalf("%s ends where %s does not begin (-begin +end):\n%s", day, next, diff)
		}
		at := expect.Must(strconv.ParseInt(dayText(day, false, zone), 10, 64))
		if first := time.Unix(at, 0).In(zone).Format(time.DateOnly); first < day || time.Unix(at-1, 0).In(zone).Format(time.DateOnly) >= day {
			t.Fatalf("%s begins on %s", day, first)
		}
	})
	expect.Equal(t, dayText("tomorrow", true, time.UTC), "tomorrow", "a text that is no day becomes")
}

// TestAmounts writes amounts in the person's language. Sums are rounded to cents, and fees to a unit of their size, and
// have their exact amount as title.
func TestAmounts(t *testing.T) {
	t.Parallel()
	in := func(language string) *visit {
		return &visit{text: texts().Named(language), chains: map[string]chain.Chain{"base": {Key: "base"}}}
	}
	element := func(value, title, shown string) template.HTML {
		if title != "" {
			title = ` title="` + title + `"`
		}
		return template.HTML(`<span class="money"><data value="` + value + `"` + title + `>` + shown + `</span>`)
	}
	for what, c := range map[string]struct{ got, want template.HTML }{
		"exact":              {in("en").money("11900519", "USDC"), element("11.900519", "", "11.900519</data> USDC")},
		"exact, German":      {in("de").money("11900519", "USDC"), element("11.900519", "", "11,900519</data> USDC")},
		"total":              {in("de").total("1234567890519", "USDC"), element("1234567.890519", "1.234.567,890519", "1.234.567,89</data> USDC")},
		"total, rounded up":  {in("en").total("11995000", "USDC"), element("11.995", "11.995", "12.00</data> USDC")},
		"total, negative":    {in("en").total("-11995000", "USDC"), element("-11.995", "-11.995", "-12.00</data> USDC")},
		"total of cents":     {in("en").total("11900000", "USDC"), element("11.90", "", "11.90</data> USDC")},
		"total, very little": {in("en").total("519", "USDC"), element("0.000519", "", "0.000519</data> USDC")},
		"total, nothing":     {in("en").total("0", "USDC"), element("0.00", "", "0.00</data> USDC")},
		"fee in gwei":        {in("en").coins("123456789000000", 18, "base"), element("123456.789", "123,456.789", "123,456.79</data> gwei")},
		"fee of gwei":        {in("fr").coins("999999", 9, "base"), element("999999", "", in("fr").text.Number("999999")+"</data> gwei")},
		"fee in ether":       {in("en").coins("12345678901", 9, "base"), element("12.345678901", "12.345678901", "12.345679</data> ETH")},
		"limit of fees":      {operatorView{visit: in("de")}.Coins(apitypes.LimitInForce{Name: "transactions a day, base", Value: 1_500_000_000}), element("1.50", "", "1,50</data> ETH")},
		"no fee":             {in("en").coins("0", 18, "base"), element("0.00", "", "0.00</data> ETH")},
	} {
		expect.Equal(t, c.got, c.want, "%s is", what)
	}
}

// TestFilledInAmounts reads amounts that a page filled in, of a token that left the configuration, in each language.
func TestFilledInAmounts(t *testing.T) {
	t.Parallel()
	d := &Dashboard{cfg: Config{Now: time.Now}}
	for _, text := range texts().Languages() {
		v := &visit{text: text}
		for _, minor := range []string{"4567000", "4900000", "1234567890519", "1"} {
			f := d.formOf(v, apitypes.Invoice{ChainKey: "gone", Currency: "EURC", Amount: minor})
			if got, problem := v.parseAmount(f.Get("amount")); got.String() != minor || problem != "" || len(f.Tokens) != 1 || f.Tokens[0].Value != f.Get("token") {
				t.Errorf("%s: the form of %s has %s, which is %s, %s; tokens %v", text.Lang(), minor, f.Get("amount"), got, problem, f.Tokens)
			}
		}
	}
}

// TestFailing writes since when an endpoint fails, which is not since when deliveries to it are paused.
func TestFailing(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 11, 30, 18, 45, 0, 0, time.UTC).Unix()
	for health, want := range map[apitypes.WebhookHealth]string{"failing": " since ", "paused": " · failing since "} {
		var shown strings.Builder
		endpoint := apitypes.Webhook{Health: health, FailingSince: since}
		expect.OK(t, templatesIn(texts().Named("en"), time.UTC).ExecuteTemplate(&shown, "failing", endpoint))
		if text := shown.String(); !strings.HasPrefix(text, want) || !strings.Contains(text, "18:45") {
			t.Errorf("%s: %s, want %s30 Nov 2026, 18:45 UTC", health, text, want)
		}
	}
}

// TestShort leaves out the middle of hashes and the end of ids.
func TestShort(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0x00000000000000000000000000000000000000a1": "0x000000…0000a1", "inv_06h0ebs5n1ta58e5ybdcx6k614": "inv_06h0ebs5n1ta…", "0x1234": "0x1234",
	} {
		expect.Equal(t, short(text), want, "%s is shortened to", text)
	}
}

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

// TestStreamsAreShared opens as many streams of one merchant as permitted, with many keys. The people
// of other merchants and of the operator get theirs, and closed streams are free again.
func TestStreamsAreShared(t *testing.T) {
	t.Parallel()
	l := newLiveStreams(nil, time.Now)
	// open opens streams of a merchant, and returns how many it got.
	open := func(merchantID string) (all []*liveStream) {
		for key := range 100 {
			s := &liveStream{person: access.Principal{MerchantID: merchantID, KeyID: fmt.Sprint("key_", merchantID, key)}}
			for {
				err := l.Join(s.claims()...)
				if exceeded := (*limits.ExceededError)(nil); errors.As(err, &exceeded) && exceeded.RetryAfter == "60" {
					break
				}
				expect.OK(t, err)
				all = append(all, s)
			}
		}
		return all
	}
	acme := open("acme")
	expect.Len(t, acme, MaxStreams/2, "one merchant has … streams:")
	for _, other := range []string{"globex", "", "initech"} {
		if n := len(open(other)); n < StreamsOfKey {
			t.Errorf("%q gets %d streams, want at least those of a person", other, n)
		}
	}
	for _, s := range acme {
		l.leave(s)
	}
	if n := len(open("acme")); n < MaxStreams/4 {
		t.Errorf("after it closed its streams, the merchant gets %d", n)
	}
}

// TestLanguages expects every language to have the texts of English.
func TestLanguages(t *testing.T) {
	t.Parallel()
	var languages []string
	for _, text := range texts().Languages() {
		languages = append(languages, text.Lang())
	}
	expect.Len(t, languages, len(locale.Languages()), "languages, of the checkout's:")
	webtest.Texts(t, expect.Must(fs.Sub(textFiles, "texts")), languages, func(language, id string, values map[string]any) bool {
		return texts().Named(language).T(id, values) != id
	})
}

// TestProblemsWithNumbers explains problems that name times and amounts to a person in Berlin who reads German.
func TestProblemsWithNumbers(t *testing.T) {
	t.Parallel()
	zone := expect.Must(time.LoadLocation("Europe/Berlin"))
	v := &visit{text: texts().Named("de"), zone: zone, chains: map[string]chain.Chain{"house": {Key: "house", Tokens: []chain.Token{{Currency: "USDC", Decimals: 6}}}}}
	for _, c := range []struct {
		code                       apitypes.ErrorCode
		label, field, detail, want string
	}{
		{apitypes.CodeInvalidField, "Läuft ab – ", "expiresAt", "expiresAt must lie in the future; it is 1764313200 and the time is 1764316800.", "Expires at must lie in the future; it is 28.11.2025, 08:00 CET and the time is 28.11.2025, 09:00 CET."},
		{apitypes.CodeInvalidField, "", "lineItems", "lineItems must add up to amount; they add up to 1500000 and amount is 12345600000.", "Line items must add up to amount; they add up to 1,50 and amount is 12.345,60."},
		{apitypes.CodeInvalidField, "", "lineItems", "lineItems must be at most 100 items; there are 101.", "Line items must be at most 100 items; there are 101."},
		{apitypes.CodeInvalidField, "Höchstbetrag – ", "maxAmount", "maxAmount must not be below minAmount; it is 1 and minAmount is 20000000.", "Max amount must not be below min amount; it is 0,000001 and min amount is 20,00."},
		{apitypes.CodeInvalidField, "", "amount", "amount " + invoice.ErrAmountSyntax.Error() + ".", "Geben Sie einen Betrag wie 4,90 ein."},
		{apitypes.CodeInvalidField, "", "lineItems[2].label", `lineItems[2].label is wrong: "1764313200 returnHosts".`, `Line item 3 label is wrong: "1764313200 returnHosts".`},
		{apitypes.CodeInvalidField, "", "", "confirmedAfter must be Unix seconds or a date such as 2026-11-30.", "Confirmed after must be a date such as 2026-11-30."},
		{apitypes.CodeAlreadyDecided, "", "", "maria has dismissed this at 2026-11-28T09:00:00Z, because: order myShop 1764313200. Undo it.", "Jemand hat das schon entschieden. Antwort des Dienstes: maria has dismissed this at 28.11.2026, 10:00 CET, because: order myShop 1764313200. Undo it."},
		{apitypes.CodeRefundNotOpen, "", "", "The state of this refund does not allow that.", "Der Zustand dieser Erstattung lässt das nicht zu."},
	} {
		if c.code == apitypes.CodeInvalidField && c.field != "amount" {
			c.want = c.label + "Antwort des Dienstes: " + c.want
		}
		if got := v.explain(apitypes.Problem{Code: c.code, Field: c.field, Detail: c.detail}); got != c.want {
			t.Errorf("%s\nis shown as %s\nwant        %s", c.detail, got, c.want)
		}
	}
}

// TestProblemsInOtherLanguages expects each code's text, or the detail as the service's answer, in each language.
func TestProblemsInOtherLanguages(t *testing.T) {
	t.Parallel()
	codes := regexp.MustCompile(`(?m)^## ([a-z_0-9]+)$`).FindAllSubmatch(expect.Must(os.ReadFile(testdeps.Repo("docs/errors.md"))), -1)
	const least = 40
	if len(codes) < least {
		t.Fatalf("docs/errors.md has only %d codes", len(codes))
	}
	for _, label := range labels {
		if texts().English().T(label, nil) == label {
			t.Errorf("%s has no text", label)
		}
	}
	for _, text := range texts().Languages() {
		v, answer := &visit{text: text}, text.T("problem.answer", locale.Values{"Detail": "Words."})
		for _, code := range codes {
			shown := v.explain(apitypes.Problem{Code: apitypes.ErrorCode(code[1]), Detail: "Words."})
			if text.Lang() != "en" && strings.Contains(shown, "Words.") && !strings.Contains(shown, answer) {
				t.Errorf("%s: %s is shown as %s", text.Lang(), code[1], shown)
			}
		}
	}
}

// TestValuesHaveTexts expects words in each language for the values of the operator's pages.
func TestValuesHaveTexts(t *testing.T) {
	t.Parallel()
	for _, text := range texts().Languages() {
		v := &visit{text: text}
		for kind, values := range map[string][]string{
			"chain.node": {string(chain.StateLagging), string(chain.StateQuarantined), string(chain.StateMisconfigured)},
			"timeline":   {"commitment.open", "commitment.close", "sweep", "authorization"},
			"delivery":   {string(access.Failed)},
		} {
			for _, value := range values {
				if v.value(kind, value) == value {
					t.Errorf("%s: %s %s has no text", text.Lang(), kind, value)
				}
			}
		}
	}
}

var (
	verb     = regexp.MustCompile(`%[-+#.0-9\[\]]*[a-zA-Z]`)
	forCode  = regexp.MustCompile(`[a-z]+[A-Z]\w*|minor units|Unix|\b[Uu]rl\b|\b\d{10}\b`)
	packages = []string{"web/api", "invoice", "ledger", "access", "webhooks"}
)

// TestProblemsAreForPeople explains the details of all problems in the source code of the interface. None of them may
// show a person a path of a field or a unit of the interface.
func TestProblemsAreForPeople(t *testing.T) {
	t.Parallel()
	v := &visit{text: texts().English()}
	found := 0
	for _, field := range details(t) {
		found++
		name, detail := field[0], strings.ReplaceAll(field[1], "%q", `"x"`)
		if strings.Contains(detail, "it is %d and the time is %d") {
			detail = strings.ReplaceAll(detail, "%d", "1764313200")
		}
		detail = verb.ReplaceAllString(detail, "7")
		if name != "" {
			detail = name + " " + detail
		}
		shown := v.explain(apitypes.Problem{Code: apitypes.CodeInvalidField, Field: name, Detail: detail})
		parts := strings.Split(shown, `"`)
		for i := 0; i < len(parts); i += 2 {
			if bad := forCode.FindString(parts[i]); bad != "" && bad != "xn" {
				t.Errorf("%q is shown in %s", bad, shown)
			}
		}
	}
	const least = 150
	if found < least {
		t.Errorf("only %d details were found, want at least %d", found, least)
	}
}

// details returns the fields and the details of the problems in the source code of packages.
func details(t *testing.T) (all [][2]string) {
	t.Helper()
	for _, dir := range packages {
		files := expect.Must(filepath.Glob(filepath.Join(testdeps.Repo("internal"), dir, "*.go")))
		for _, name := range files {
			body := expect.Must(os.ReadFile(name))
			file, err := parser.ParseFile(token.NewFileSet(), name, body, parser.SkipObjectResolution)
			expect.OK(t, err)
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			ast.Inspect(file, func(n ast.Node) bool {
				all = append(all, detailsOf(n)...)
				return true
			})
		}
	}
	return all
}

// detailsOf returns the detail that a call or a literal makes.
func detailsOf(n ast.Node) [][2]string {
	switch n := n.(type) {
	case *ast.CallExpr:
		name := ""
		switch fun := n.Fun.(type) {
		case *ast.Ident:
			name = fun.Name
		case *ast.SelectorExpr:
			name = fun.Sel.Name
		}
		if (name == "fieldErrorf" || name == "invalidField" || name == "reject") && len(n.Args) > 1 && literal(n.Args[1]) != "" {
			field := literal(n.Args[0])
			if field == "" {
				field = "someField"
			}
			return [][2]string{{field, literal(n.Args[1])}}
		}
	case *ast.CompositeLit:
		if len(n.Elts) == 3 && literal(n.Elts[2]) != "" { // of problems
			if code, ok := n.Elts[1].(*ast.SelectorExpr); ok && strings.HasPrefix(code.Sel.Name, "Code") {
				return [][2]string{{"", literal(n.Elts[2])}}
			}
		}
	}
	return nil
}

// literal returns the text of a string literal, or "".
func literal(e ast.Expr) string {
	if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
		text, _ := strconv.Unquote(l.Value)
		return text
	}
	return ""
}
