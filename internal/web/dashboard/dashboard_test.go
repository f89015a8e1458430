package dashboard

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
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
		if got := next(r); got != want {
			t.Errorf("%q leads to %q, want %q", asked, got, want)
		}
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
		if got := readAgain(now, c.rows...); got != c.want {
			t.Errorf("%s: after %d s, want %d", name, got, c.want)
		}
	}
}

// TestShortCount adds up the counts of the inbox for the navigation.
func TestShortCount(t *testing.T) {
	t.Parallel()
	for want, counts := range map[string][]apitypes.InboxCount{
		"": {{Count: 0}}, "3": {{Count: 1}, {Count: 2}}, "99": {{Count: 99}}, "99+": {{Count: 60}, {Count: 40}},
	} {
		if got := shortCount(counts); got != want {
			t.Errorf("%v is %q, want %q", counts, got, want)
		}
	}
	if got := shortCount([]apitypes.InboxCount{{Count: 5, More: true}}); got != "99+" {
		t.Errorf("more than were counted is %q", got)
	}
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
	if begun != limits.SiteWeight*SignInsOfClient {
		t.Errorf("the networks of a site begin %d sign-ins", begun)
	}
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
		at, err := strconv.ParseInt(dayText(day, false, zone), 10, 64)
		expect.OK(t, err)
		if first := time.Unix(at, 0).In(zone).Format(time.DateOnly); first < day || time.Unix(at-1, 0).In(zone).Format(time.DateOnly) >= day {
			t.Fatalf("%s begins on %s", day, first)
		}
	})
	if got := dayText("tomorrow", true, time.UTC); got != "tomorrow" {
		t.Errorf("a text that is no day becomes %q", got)
	}
}

// TestAmounts writes amounts in the person's language. Sums are rounded to cents, and fees to a unit of their size, and
// have their exact amount as title.
func TestAmounts(t *testing.T) {
	t.Parallel()
	const decimals = 6
	in := func(language string) *visit {
		return &visit{text: texts().Named(language), chains: map[string]chain.Chain{"base": {Key: "base"}}}
	}
	element := func(value, title, shown string) template.HTML {
		if title != "" {
			title = ` title="` + title + `"`
		}
		return template.HTML(`<span class="money"><data value="` + value + `"` + title + `>` + shown + `</span>`)
	}
	places := decimals
	for what, c := range map[string]struct{ got, want template.HTML }{
		"exact":              {in("en").exact("11900519", &places, "USDC"), element("11.900519", "", "11.900519</data> USDC")},
		"exact, German":      {in("de").exact("11900519", &places, "USDC"), element("11.900519", "", "11,900519</data> USDC")},
		"total":              {in("de").total("1234567890519", &places, "USDC"), element("1234567.890519", "1.234.567,890519", "1.234.567,89</data> USDC")},
		"total, rounded up":  {in("en").total("11995000", &places, "USDC"), element("11.995", "11.995", "12.00</data> USDC")},
		"total, negative":    {in("en").total("-11995000", &places, "USDC"), element("-11.995", "-11.995", "-12.00</data> USDC")},
		"total of cents":     {in("en").total("11900000", &places, "USDC"), element("11.90", "", "11.90</data> USDC")},
		"total, very little": {in("en").total("519", &places, "USDC"), element("0.000519", "", "0.000519</data> USDC")},
		"total, nothing":     {in("en").total("0", &places, "USDC"), element("0.00", "", "0.00</data> USDC")},
		"unknown decimals":   {in("en").exact("11900519", nil, "<USDC>"), "11900519 &lt;USDC&gt;"},
		"fee in gwei":        {in("en").coins("123456789000000", 18, "base"), element("123456.789", "123,456.789", "123,456.79</data> gwei")},
		"fee of gwei":        {in("fr").coins("999999", 9, "base"), element("999999", "", in("fr").text.Number("999999")+"</data> gwei")},
		"fee in ether":       {in("en").coins("12345678901", 9, "base"), element("12.345678901", "12.345678901", "12.345679</data> ETH")},
		"no fee":             {in("en").coins("0", 18, "base"), element("0.00", "", "0.00</data> ETH")},
	} {
		if c.got != c.want {
			t.Errorf("%s is %s, want %s", what, c.got, c.want)
		}
	}
}

// TestShort leaves out the middle of hashes and the end of ids.
func TestShort(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0x00000000000000000000000000000000000000a1": "0x000000…0000a1", "inv_06h0ebs5n1ta58e5ybdcx6k614": "inv_06h0ebs5n1ta…", "0x1234": "0x1234",
	} {
		if got := short(text); got != want {
			t.Errorf("%s is shortened to %s, want %s", text, got, want)
		}
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
	open := func(merchantID string) (all []access.Principal) {
		for key := range 100 {
			p := access.Principal{MerchantID: merchantID, KeyID: fmt.Sprint("key_", merchantID, key)}
			for {
				err := l.join(p)
				if exceeded := (*limits.ExceededError)(nil); errors.As(err, &exceeded) && exceeded.RetryAfter == "60" {
					break
				}
				expect.OK(t, err)
				all = append(all, p)
			}
		}
		return all
	}
	acme := open("acme")
	if len(acme) != MaxStreams/2 {
		t.Errorf("one merchant has %d streams, want %d", len(acme), MaxStreams/2)
	}
	for _, other := range []string{"globex", "", "initech"} {
		if n := len(open(other)); n < StreamsOfKey {
			t.Errorf("%q gets %d streams, want at least those of a person", other, n)
		}
	}
	for _, p := range acme {
		l.leave(p, nil)
	}
	if n := len(open("acme")); n < MaxStreams/4 {
		t.Errorf("after it closed its streams, the merchant gets %d", n)
	}
}
