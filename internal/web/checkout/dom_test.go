package checkout

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// element is a node of a parsed page. text holds the text before the first child and after each child.
type element struct {
	name     string
	attrs    map[string]string
	children []*element
	text     []string
}

// parsePage parses a page as browsers without scripts do. The test fails if a tag is not closed.
func parsePage(t *testing.T, page string) *element {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	root := &element{text: []string{""}}
	open := []*element{root}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			if len(open) != 1 {
				t.Fatalf("<%s> is not closed", open[len(open)-1].name)
			}
			return root
		}
		if err != nil {
			t.Fatalf("parse page: %v\n%s", err, page)
		}
		top := open[len(open)-1]
		switch token := token.(type) {
		case xml.StartElement:
			e := &element{name: token.Name.Local, attrs: map[string]string{}, text: []string{""}}
			for _, a := range token.Attr {
				e.attrs[a.Name.Local] = a.Value
			}
			top.children, top.text = append(top.children, e), append(top.text, "")
			open = append(open, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			top.text[len(top.text)-1] += string(token)
		}
	}
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

func (e *element) named(name string) []*element {
	return e.all(func(e *element) bool { return e.name == name })
}

// id returns the element with the id, or fails the test.
func (e *element) id(t *testing.T, id string) *element {
	t.Helper()
	found := e.all(func(e *element) bool { return e.attrs["id"] == id })
	if len(found) != 1 {
		t.Fatalf("%d elements have the id %q, want 1", len(found), id)
	}
	return found[0]
}

// words returns the element's visible text, with plain spaces.
func (e *element) words() string {
	var b strings.Builder
	e.write(&b)
	return strings.Join(strings.Fields(strings.ReplaceAll(b.String(), "\u00a0", " ")), " ")
}

func (e *element) write(b *strings.Builder) {
	for i, text := range e.text {
		b.WriteString(text)
		if i < len(e.children) {
			if !slices.Contains([]string{"span", "code", "strong", "time", "data", "a"}, e.children[i].name) {
				b.WriteString(" ")
			}
			if e.attrs["class"] == "long" && e.children[i].name == "summary" {
				continue // repeats the text, shortened
			}
			e.children[i].write(b)
		}
	}
}
