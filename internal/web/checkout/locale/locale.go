package locale

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/nicksnyder/go-i18n/v2/i18n"
	"golang.org/x/text/language"
)

//go:embed *.json
var files embed.FS

// Values are the values of a text's placeholders.
type Values = map[string]any

// Count is the placeholder of the number that decides the plural form.
const Count = "Count"

// ScriptPrefix begins the ids of the texts that scripts show.
const ScriptPrefix = "script."

// Text is the texts of one language. It is immutable.
type Text struct {
	tag       language.Tag
	localizer *i18n.Localizer
	plain     map[string]string // texts without placeholders and plural forms
	scripts   map[string]string
	rtl       bool
	numbers   numbers
}

// Catalogue is texts in all its languages, English first, then by tag. It is immutable.
type Catalogue struct {
	languages []*Text
	matcher   language.Matcher
}

// loaded returns the texts of payers' pages. They are parsed at first use, because most commands never need them.
var loaded = sync.OnceValue(func() *Catalogue { return Open(files) })

// English returns the language for payers who ask for no supported language.
func English() *Text { return loaded().English() }

// Open parses the files *.json of a folder, one per language, of which en.json is required. A
// text that another language lacks is English in it. It panics if a file is malformed.
func Open(files fs.FS) *Catalogue {
	bundle := i18n.NewBundle(language.English)
	bundle.RegisterUnmarshalFunc("json", json.Unmarshal)
	names, err := fs.Glob(files, "*.json")
	if err != nil {
		panic(err)
	}
	var list []*Text
	for _, name := range names {
		file, err := bundle.LoadMessageFileFS(files, name)
		if err != nil {
			panic(fmt.Errorf("locale: %w", err))
		}
		text := &Text{tag: file.Tag, plain: make(map[string]string), scripts: make(map[string]string), rtl: isRightToLeft(file.Tag), numbers: numbersIn(file.Tag)}
		for _, message := range file.Messages {
			if !strings.Contains(message.Other, "{{") {
				text.plain[message.ID] = message.Other
			}
			if strings.HasPrefix(message.ID, ScriptPrefix) {
				text.scripts[message.ID] = message.Other
			}
		}
		list = append(list, text)
	}
	slices.SortFunc(list, func(a, b *Text) int { return cmp.Compare(order(a), order(b)) })
	tags := make([]language.Tag, len(list))
	for i, text := range list {
		tags[i] = text.tag
		text.localizer = i18n.NewLocalizer(bundle, text.tag.String())
		for id, english := range list[0].scripts {
			if text.scripts[id] == "" {
				text.scripts[id] = english
			}
		}
	}
	return &Catalogue{list, language.NewMatcher(tags)}
}

// English returns the English texts.
func (c *Catalogue) English() *Text { return c.languages[0] }

// Languages returns all languages, in the order of the menu.
func (c *Catalogue) Languages() []*Text { return slices.Clone(c.languages) }

// Named returns the texts of the language with a tag, or the English ones.
func (c *Catalogue) Named(tag string) *Text {
	if i := slices.IndexFunc(c.languages, func(t *Text) bool { return t.Lang() == tag }); i >= 0 {
		return c.languages[i]
	}
	return c.English()
}

// order is the key by which languages are sorted.
func order(t *Text) string {
	if t.tag == language.English {
		return ""
	}
	return t.tag.String()
}

func isRightToLeft(tag language.Tag) bool {
	script, _ := tag.Script()
	return script.String() == "Arab" || script.String() == "Hebr"
}

// For returns the texts of payers' pages in the language of a request; see Catalogue.For.
func For(r *http.Request) *Text { return loaded().For(r) }

// Named returns the texts of payers' pages in the language with a tag, or in English.
func Named(tag string) *Text { return loaded().Named(tag) }

// Languages returns all languages of payers' pages, in the order of the menu.
func Languages() []*Text { return loaded().Languages() }

// Lang returns the language's BCP 47 tag.
func (t *Text) Lang() string { return t.tag.String() }

// Dir returns the direction of writing: ltr or rtl.
func (t *Text) Dir() string {
	if t.rtl {
		return "rtl"
	}
	return "ltr"
}

// Name returns the language's own name.
func (t *Text) Name() string { return t.T("language.name", nil) }

// Colon returns the colon between a name and its value.
func (t *Text) Colon() string {
	switch t.Lang() {
	case "fr":
		return "\u00a0: "
	case "ja", "zh":
		return "："
	}
	return ": "
}

// Scripts returns the texts that scripts show, by id, with their placeholders.
func (t *Text) Scripts() map[string]string { return t.scripts }

// T returns a text without markup. Without the id, it returns the id.
func (t *Text) T(id string, values Values) string {
	return t.localize(id, values, func(v any) string { return fmt.Sprint(v) })
}

// Marked is a value that pages show in a separate element.
type Marked interface{ HTML() template.HTML }

// HTML returns a text for a page. It escapes the values, except values of type template.HTML and Marked.
func (t *Text) HTML(id string, values Values) template.HTML {
	return template.HTML(t.localize(id, values, markup)) //nolint:gosec // values are escaped, and texts have no markup
}

// InTemplate is HTML for templates: pairs are the names and values of placeholders.
func (t *Text) InTemplate(id string, pairs ...any) (template.HTML, error) {
	values := make(Values, len(pairs)/2)
	for pair := range slices.Chunk(pairs, 2) {
		name, ok := pair[0].(string)
		if !ok || len(pair) != 2 {
			return "", fmt.Errorf("values of a text must be pairs of a name and a value, not %v", pair)
		}
		values[name] = pair[1]
	}
	return t.HTML(id, values), nil
}

// markup returns a value as it is in a page.
func markup(value any) string {
	switch value := value.(type) {
	case template.HTML:
		return string(value)
	case Marked:
		return string(value.HTML())
	}
	return template.HTMLEscapeString(fmt.Sprint(value))
}

// localize returns a text with its values, which show writes.
func (t *Text) localize(id string, values Values, show func(any) string) string {
	if text, ok := t.plain[id]; ok {
		return text
	}
	data := make(Values, len(values))
	for name, value := range values {
		data[name] = t.value(value, show)
	}
	count := values[Count]
	if n, ok := count.(uint64); ok {
		count = int64(n)
	}
	text, err := t.localizer.Localize(config(id, data, count))
	if text == "" && err != nil {
		return id
	}
	return text
}

// config returns what go-i18n needs for a text with its values. count decides the plural form; nil without one.
func config(id string, values Values, count any) *i18n.LocalizeConfig {
	return &i18n.LocalizeConfig{MessageID: id, TemplateData: values, PluralCount: count}
}

// Characters that isolate a value from the direction of the text around it.
const (
	isolate    = "\u2068"
	endIsolate = "\u2069"
)

// value prepares the value of a placeholder. In languages that are written from right to
// left, values that are not numbers keep their own direction.
func (t *Text) value(value any, show func(any) string) string {
	switch value.(type) {
	case uint64, int, int64:
		return t.Number(fmt.Sprint(value))
	}
	if t.rtl {
		return isolate + show(value) + endIsolate
	}
	return show(value)
}
