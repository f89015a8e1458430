package dashboard_test

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/quittance/quittance/internal/test/webtest"
)

// element is an element of a page.
type element = webtest.Element

// logoSource matches the address of a merchant's logo on a page.
var logoSource = regexp.MustCompile(`^/dashboard/settings/logo\?(merchantId=[a-z]+&)?v=[0-9a-f]{64}$`)

// safe are the schemes of links.
var safe = []string{"", "http", "https", "mailto", "tel", "ethereum"}

// strictly parses a page strictly: it returns what is not well-formed, and what could run or load
// anything except a file of the dashboard.
func strictly(page string) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if open := webtest.Unclosed(page); len(open) > 0 {
		fault("not closed: %v", open)
	}
	for z := html.NewTokenizer(strings.NewReader(page)); ; {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		raw := string(z.Raw())
		token := z.Token()
		switch kind {
		case html.CommentToken:
			fault("comment %s", raw)
		case html.TextToken:
			if strings.ContainsAny(raw, "<>") {
				fault("text with a bracket: %s", raw)
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			faults = append(faults, attributes(token)...)
		case html.EndTagToken, html.ErrorToken, html.DoctypeToken:
		}
	}
	return faults
}

// attributes returns the faults of an element's attributes.
func attributes(token html.Token) (faults []string) {
	names, isData := make(map[string]bool), false
	for _, a := range token.Attr {
		names[a.Key] = true
		isData = isData || a.Key == "type" && a.Val == "application/json"
		switch {
		case strings.HasPrefix(a.Key, "on"), a.Key == "style", a.Key == "srcdoc":
			faults = append(faults, fmt.Sprintf("<%s %s=%q>", token.Data, a.Key, a.Val))
		case a.Key == "src", token.Data == "link" && a.Key == "href":
			if !strings.HasPrefix(a.Val, "/dashboard/static/") && !(token.Data == "img" && logoSource.MatchString(a.Val)) {
				faults = append(faults, fmt.Sprintf("<%s> loads %q", token.Data, a.Val))
			}
		case a.Key == "href", a.Key == "action", a.Key == "formaction":
			if u, err := url.Parse(a.Val); err != nil || !slices.Contains(safe, u.Scheme) || u.Opaque != "" && strings.Contains(u.Opaque, "<") {
				faults = append(faults, fmt.Sprintf("<%s> leads to %q", token.Data, a.Val))
			}
		}
	}
	if token.Data == "script" && !names["src"] && !isData {
		faults = append(faults, "a script in the page")
	}
	return faults
}

// TestStrictly finds a fault in each page except the first.
func TestStrictly(t *testing.T) {
	t.Parallel()
	const good = `<!doctype html><p class="a">1 &lt; 2<br><a href="/dashboard?q=%3C">x</a><script type="application/json">{"a":"\u003c"}</script></p>`
	if faults := strictly(good); len(faults) > 0 {
		t.Errorf("a good page has the faults %q", faults)
	}
	for _, page := range []string{
		"<p>1 > 0</p>", "<p>", "</p>", "<p><b></p></b>", "<p><!-- x --></p>", "<script>x()</script>", `<script src="https://evil.example/x.js"></script>`,
		`<img src="x">`, `<p onclick="x()">x</p>`, `<p style="color:red">x</p>`, `<a href="javascript:x()">x</a>`,
		`<a href=" javascript:x()">x</a>`, `<form action="data:text/html,x"></form>`, `<link href="//evil.example/x.css">`,
	} {
		if len(strictly(page)) == 0 {
			t.Errorf("%s has no fault", page)
		}
	}
}
