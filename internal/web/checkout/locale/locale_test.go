package locale

import (
	"html/template"
	"maps"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/quittance/quittance/internal/test/expect"
)

func TestNegotiation(t *testing.T) {
	for _, test := range []struct{ lang, accept, want string }{
		{"", "", "en"}, {"", "de", "de"}, {"", "de-AT,en;q=0.5", "de"}, {"", "fi, de;q=0.1", "de"},
		{"de", "en", "de"}, {"xx", "de", "de"}, {"xx", "", "en"}, {"DE-ch", "", "de"},
		{"", "xx, de", "de"}, {"", "de;q=x, fr", "fr"}, {"", "de;q=0, fr;q=0.1", "fr"}, {"", "fr;q=0.5, de;q=0.9, *;q=0.1", "de"},
		{"", "x-mine, , ja;Q=1", "ja"}, {"", "de;q=NaN, it ; q = 0.3", "it"}, {"", strings.Repeat("xx,", 100) + "ko", "ko"}, {"fi,de", "fr", "de"},
		{"", "\xff;;q=z", "en"}, {`"><script>`, strings.Repeat("de-", 5000), "en"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		q := r.URL.Query()
		q.Set("lang", test.lang)
		r.URL.RawQuery = q.Encode()
		r.Header.Set("Accept-Language", test.accept)
		expect.Equal(t, For(r).Lang(), test.want, "lang=%.20q, Accept-Language %.20q:", test.lang, test.accept)
	}
}

func TestValuesAreEscaped(t *testing.T) {
	v := Values{"Merchant": `<b>"A&B"</b>`, "Time": template.HTML("<time></time>")}
	expect.Equal(t, English().T("status.paid.text", v), `<b>"A&B"</b> received the payment on <time></time>. Thank you.`, "as text:")
	expect.Equal(t, English().HTML("status.paid.text", v), template.HTML(`&lt;b&gt;&#34;A&amp;B&#34;&lt;/b&gt; received the payment on <time></time>. Thank you.`), "as HTML:")
	type name string
	expect.Equal(t, English().HTML("back.paid", Values{"Merchant": name("<b>")}), "Back to &lt;b&gt;", "a named type:")
}

func TestCounts(t *testing.T) {
	for count, want := range map[any]string{1: "1 item", 0: "0 items", 2: "2 items", uint64(1): "1 item", int64(3): "3 items"} {
		expect.Equal(t, English().T("items.count", Values{Count: count}), want, "%v:", count)
	}
}

// TestColon writes a name and a value with the colon of the language.
func TestColon(t *testing.T) {
	t.Parallel()
	for lang, want := range map[string]string{"en": "a: b", "de": "a: b", "fr": "a\u00a0: b", "ja": "a：b", "zh": "a：b"} {
		expect.Equal(t, "a"+Named(lang).Colon()+"b", want, "%s:", lang)
	}
}

// TestNumbers writes numbers with the separators of their language, and the digits of amounts to copy.
func TestNumbers(t *testing.T) {
	for language, want := range map[string]string{
		"en": "-1,234,567.890 123 1,000", "de": "-1.234.567,890 123 1.000", "fr": "-1\u00a0234\u00a0567,890 123 1\u00a0000",
		"ja": "-1,234,567.890 123 1,000", "tr": "-1.234.567,890 123 1.000", "ar": "-1,234,567.890 123 1,000", "he": "-1,234,567.890 123 1,000",
		"es": "-1.234.567,890 123 1000", "it": "-1.234.567,890 123 1000", "pt": "-1.234.567,890 123 1.000",
	} {
		text := Named(language)
		got := text.Number("-1234567.890") + " " + text.Number("123") + " " + text.Number("1000")
		if got = strings.ReplaceAll(got, "\u202f", "\u00a0"); got != want {
			t.Errorf("%s: %q, want %q", language, got, want)
		}
		expect.Equal(t, text.DecimalComma(), strings.Contains(want, ",890"), "%s: DecimalComma() =", language)
	}
	if got := Named("es").Number("1234.5") + " " + Named("es").Number("12345"); got != "1234,5 12.345" {
		t.Errorf("in Spanish, 1234.5 and 12345 are %s", got)
	}
	if got := Named("de").T("items.count", Values{Count: 1234567}); !strings.HasPrefix(got, "1.234.567 ") {
		t.Errorf("a count is %s", got)
	}
}

// TestDays writes days and seconds as the language does.
func TestDays(t *testing.T) {
	at := time.Date(2026, 9, 1, 16, 28, 20, 0, time.UTC)
	for language, want := range map[string]string{
		"en": "1 September 2026|1 September|1 September 2026, 16:28:20 UTC", "de": "01.09.2026|01.09.|01.09.2026, 16:28:20 UTC",
		"fr": "01/09/2026|01/09|01/09/2026 16:28:20 UTC", "ja": "2026年09月01日|09月01日|2026年09月01日 16:28:20 UTC",
		"ko": "2026년 09월 01일|09월 01일|2026년 09월 01일 16:28:20 UTC", "ar": "01/09/2026|01/09|01/09/2026، 16:28:20 UTC",
	} {
		text := Named(language)
		got := text.Day("2026-09-01") + "|" + text.ShortDay("2026-09-01") + "|" + string(text.SecondIn(at, time.UTC))
		if got = strings.NewReplacer(`<time datetime="2026-09-01T16:28:20Z">`, "", "</time>", "").Replace(got); got != want {
			t.Errorf("%s: %s, want %s", language, got, want)
		}
	}
	expect.Equal(t, English().Day("soon"), "soon", "a text that is no day becomes")
}

func TestTime(t *testing.T) {
	at := time.Date(2026, 9, 21, 16, 28, 20, 0, time.FixedZone("", 2*60*60))
	want := template.HTML(`<time datetime="2026-09-21T14:28:20Z">21 September 2026, 14:28:20 UTC</time>`)
	if got := English().Time(at); got != want {
		t.Errorf("%s", got)
	}
}

// Values in languages that are written from right to left keep their own direction.
func TestIsolation(t *testing.T) {
	text := &Text{localizer: English().localizer, plain: English().plain, rtl: true}
	if got := text.T("back.paid", Values{"Merchant": "A"}); got != "Back to \u2068A\u2069" || text.Dir() != "rtl" {
		t.Errorf("%q %s", got, text.Dir())
	}
}

func TestUnknownID(t *testing.T) {
	if got := English().T("no.such", nil); got != "no.such" {
		t.Errorf("%q", got)
	}
}

// TestScriptsInEnglish gives scripts the English texts that a language lacks.
func TestScriptsInEnglish(t *testing.T) {
	catalogue := Open(fstest.MapFS{
		"en.json": {Data: []byte(`{"script.copied": "Copied", "script.selected": "Selected"}`)},
		"de.json": {Data: []byte(`{"script.copied": "Kopiert"}`)},
	})
	want := map[string]string{"script.copied": "Kopiert", "script.selected": "Selected"}
	if got := catalogue.Named("de").Scripts(); !maps.Equal(got, want) {
		t.Errorf("the texts are %v, want %v", got, want)
	}
}

func TestNoTimeIsNoText(t *testing.T) {
	text := English()
	zone := time.FixedZone("CET", 3600)
	if got := text.Clock(time.Time{}) + string(text.Time(time.Time{})) + string(text.TimeIn(time.Time{}.In(zone), zone)); got != "" {
		t.Errorf("the zero time is shown as %q", got)
	}
	if got := text.TimeIn(time.Unix(1_764_000_000, 0), zone); !strings.Contains(string(got), `datetime="2025-11-24T16:00:00Z"`) {
		t.Errorf("a time is shown as %s", got)
	}
}
