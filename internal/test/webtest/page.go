package webtest

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// Element is an element of a page.
type Element struct {
	Name     string
	Attrs    map[string]string
	Children []*Element
	Text     []string // before the first child and after each
}

// Parse parses a page as browsers without scripts do. The test fails if a tag is not closed.
func Parse(t *testing.T, page string) *Element {
	t.Helper()
	root, err := html.ParseWithOptions(strings.NewReader(page), html.ParseOptionEnableScripting(false))
	if open := Unclosed(page); err != nil || len(open) > 0 {
		t.Fatalf("parse page: %v, not closed: %v\n%s", err, open, page)
	}
	return elementOf(root)
}

func elementOf(n *html.Node) *Element {
	e := &Element{Name: n.Data, Attrs: make(map[string]string), Text: []string{""}}
	for _, a := range n.Attr {
		e.Attrs[a.Key] = a.Val
	}
	for child := range n.ChildNodes() {
		if child.Type == html.TextNode {
			e.Text[len(e.Text)-1] += child.Data
		}
		if child.Type == html.ElementNode {
			e.Children, e.Text = append(e.Children, elementOf(child)), append(e.Text, "")
		}
	}
	return e
}

// void are the elements without an end.
var void = []string{"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}

// Unclosed returns the tags of a page that are not closed, or are closed in another order.
func Unclosed(page string) (open []string) {
	for z := html.NewTokenizer(strings.NewReader(page)); ; {
		kind := z.Next()
		name, _ := z.TagName()
		switch tag := string(name); {
		case kind == html.ErrorToken:
			return open
		case kind == html.StartTagToken && !slices.Contains(void, tag):
			open = append(open, tag)
		case kind == html.EndTagToken && len(open) > 0 && open[len(open)-1] == tag:
			open = open[:len(open)-1]
		case kind == html.EndTagToken:
			return append(open, "/"+tag)
		}
	}
}

// All returns the matching elements below e, in document order.
func (e *Element) All(fits func(*Element) bool) []*Element {
	var found []*Element
	for _, child := range e.Children {
		if fits(child) {
			found = append(found, child)
		}
		found = append(found, child.All(fits)...)
	}
	return found
}

// Named returns the elements with a tag name.
func (e *Element) Named(name string) []*Element {
	return e.All(func(e *Element) bool { return e.Name == name })
}

// Classed returns the elements with a class.
func (e *Element) Classed(class string) []*Element {
	return e.All(func(e *Element) bool { return slices.Contains(strings.Fields(e.Attrs["class"]), class) })
}

// ID returns the element with the id, or fails the test.
func (e *Element) ID(t *testing.T, id string) *Element {
	t.Helper()
	found := e.All(func(e *Element) bool { return e.Attrs["id"] == id })
	if len(found) != 1 {
		t.Fatalf("%d elements have the id %q, want 1", len(found), id)
	}
	return found[0]
}

// Forms returns the forms that are sent. It omits forms that only close a dialog.
func (e *Element) Forms() []*Element {
	return slices.DeleteFunc(e.Named("form"), func(form *Element) bool { return form.Attrs["method"] == "dialog" })
}

// Links returns the addresses of all links.
func (e *Element) Links() (addresses []string) {
	for _, a := range e.Named("a") {
		addresses = append(addresses, a.Attrs["href"])
	}
	return addresses
}

// Posts returns the forms that make changes.
func (e *Element) Posts() []*Element {
	return slices.DeleteFunc(e.Named("form"), func(form *Element) bool { return form.Attrs["method"] != "post" })
}

// Actions returns the addresses of all forms that make changes.
func (e *Element) Actions() (addresses []string) {
	for _, form := range e.Posts() {
		addresses = append(addresses, form.Attrs["action"])
	}
	return addresses
}

// Values returns the values of a form that a browser sends, without its buttons.
func (e *Element) Values() url.Values {
	values := make(url.Values)
	for _, field := range e.All(func(e *Element) bool { return e.Attrs["name"] != "" }) {
		name := field.Attrs["name"]
		_, checked := field.Attrs["checked"]
		switch kind := field.Attrs["type"]; {
		case field.Name == "textarea":
			values.Add(name, strings.Join(field.Text, ""))
		case field.Name == "select":
			values.Add(name, field.selected())
		case field.Name == "input" && (checked || kind != "checkbox" && kind != "radio" && kind != "submit"):
			values.Add(name, field.Attrs["value"])
		}
	}
	return values
}

// selected returns the value of a list's selected option, which is the first by default.
func (e *Element) selected() string {
	options := e.Named("option")
	if len(options) == 0 {
		return ""
	}
	i := slices.IndexFunc(options, func(o *Element) bool { _, ok := o.Attrs["selected"]; return ok })
	chosen := options[max(i, 0)]
	if value, ok := chosen.Attrs["value"]; ok {
		return value
	}
	return chosen.Words()
}

// Words returns the visible text, with plain spaces.
func (e *Element) Words() string {
	var b strings.Builder
	e.write(&b)
	return strings.Join(strings.Fields(strings.ReplaceAll(b.String(), "\u00a0", " ")), " ")
}

func (e *Element) write(b *strings.Builder) {
	for i, text := range e.Text {
		b.WriteString(text)
		if i == len(e.Children) {
			return
		}
		child := e.Children[i]
		if !slices.Contains([]string{"span", "code", "strong", "time", "data", "a", "script"}, child.Name) {
			b.WriteString(" ")
		}
		repeats := e.Attrs["class"] == "long" && child.Name == "summary" // the text, shortened
		if child.Name != "script" && child.Name != "style" && !repeats {
			child.write(b)
		}
	}
}
