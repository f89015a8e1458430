package dashboard_test

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// element is an element of a page.
type element struct {
	name     string
	attrs    map[string]string
	children []*element
	text     []string // before the first child and after each
}

// parsePage parses a page as browsers without scripts do.
func parsePage(t *testing.T, page string) *element {
	t.Helper()
	root, err := html.ParseWithOptions(strings.NewReader(page), html.ParseOptionEnableScripting(false))
	if err != nil {
		t.Fatalf("parse page: %v\n%s", err, page)
	}
	return elementOf(root)
}

func elementOf(n *html.Node) *element {
	e := &element{name: n.Data, attrs: make(map[string]string), text: []string{""}}
	for _, a := range n.Attr {
		e.attrs[a.Key] = a.Val
	}
	for child := range n.ChildNodes() {
		if child.Type == html.TextNode {
			e.text[len(e.text)-1] += child.Data
		}
		if child.Type == html.ElementNode {
			e.children, e.text = append(e.children, elementOf(child)), append(e.text, "")
		}
	}
	return e
}

// all returns the matching elements below e, in document order.
func (e *element) all(fits func(*element) bool) []*element {
	var found []*element
	for _, child := range e.children {
		if fits(child) {
			found = append(found, child)
		}
		found = append(found, child.all(fits)...)
	}
	return found
}

// named returns the elements with a tag name.
func (e *element) named(name string) []*element {
	return e.all(func(e *element) bool { return e.name == name })
}

// classed returns the elements with a class.
func (e *element) classed(class string) []*element {
	return e.all(func(e *element) bool { return slices.Contains(strings.Fields(e.attrs["class"]), class) })
}

// forms returns the forms that are sent. It omits forms that only close a dialog.
func (e *element) forms() []*element {
	return slices.DeleteFunc(e.named("form"), func(form *element) bool { return form.attrs["method"] == "dialog" })
}

// links returns the addresses of all links.
func (e *element) links() (addresses []string) {
	for _, a := range e.named("a") {
		addresses = append(addresses, a.attrs["href"])
	}
	return addresses
}

// actions returns the addresses of all forms that make changes.
func (e *element) actions() (addresses []string) {
	for _, form := range e.named("form") {
		if form.attrs["method"] == "post" {
			addresses = append(addresses, form.attrs["action"])
		}
	}
	return addresses
}

// values returns the values of a form that a browser sends, without its buttons.
func (e *element) values() url.Values {
	values := make(url.Values)
	for _, field := range e.all(func(e *element) bool { return e.attrs["name"] != "" }) {
		name := field.attrs["name"]
		_, checked := field.attrs["checked"]
		switch kind := field.attrs["type"]; {
		case field.name == "textarea":
			values.Add(name, strings.Join(field.text, ""))
		case field.name == "select":
			values.Add(name, field.selected())
		case field.name == "input" && (checked || kind != "checkbox" && kind != "radio" && kind != "submit"):
			values.Add(name, field.attrs["value"])
		}
	}
	return values
}

// selected returns the value of a list's selected option, which is the first by default.
func (e *element) selected() string {
	options := e.named("option")
	if len(options) == 0 {
		return ""
	}
	i := slices.IndexFunc(options, func(o *element) bool { _, ok := o.attrs["selected"]; return ok })
	chosen := options[max(i, 0)]
	if value, ok := chosen.attrs["value"]; ok {
		return value
	}
	return chosen.words()
}

// words returns the visible text, with plain spaces.
func (e *element) words() string {
	var b strings.Builder
	e.write(&b)
	return strings.Join(strings.Fields(strings.ReplaceAll(b.String(), "\u00a0", " ")), " ")
}

func (e *element) write(b *strings.Builder) {
	for i, text := range e.text {
		b.WriteString(text)
		if i < len(e.children) && e.children[i].name != "script" {
			if !slices.Contains([]string{"span", "code", "strong", "time", "data", "a"}, e.children[i].name) {
				b.WriteString(" ")
			}
			e.children[i].write(b)
		}
	}
}

// logoSource matches the address of a merchant's logo on a page.
var logoSource = regexp.MustCompile(`^/dashboard/settings/logo\?(merchantId=[a-z]+&)?v=[0-9a-f]{64}$`)

// void are the elements without an end, and safe the schemes of links.
var (
	void = []string{"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
	safe = []string{"", "http", "https", "mailto", "tel", "ethereum"}
)

// strictly parses a page strictly: it returns what is not well-formed, and what could run or load
// anything except a file of the dashboard.
func strictly(page string) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	var open []string
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
			if kind == html.StartTagToken && !slices.Contains(void, token.Data) {
				open = append(open, token.Data)
			}
		case html.EndTagToken:
			if len(open) == 0 || open[len(open)-1] != token.Data {
				fault("</%s> in %v", token.Data, open)
				continue
			}
			open = open[:len(open)-1]
		case html.ErrorToken, html.DoctypeToken:
		}
	}
	if len(open) > 0 {
		fault("not closed: %v", open)
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
