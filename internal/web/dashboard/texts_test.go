package dashboard

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/checkout/locale"
)

// forms returns the plural forms of each text of a file by name, with "other" for the usual form.
func forms(t *testing.T, file string) map[string]map[string]string {
	t.Helper()
	body, err := textFiles.ReadFile(file)
	expect.OK(t, err)
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	expect.Success(t)(decoder.Token())
	all := make(map[string]map[string]string)
	for decoder.More() {
		id, err := decoder.Token()
		expect.OK(t, err)
		var text any
		expect.OK(t, decoder.Decode(&text))
		if all[id.(string)] != nil {
			t.Errorf("%s has %s twice", file, id)
		}
		all[id.(string)] = formsOf(text)
	}
	return all
}

// formsOf returns the forms of a text.
func formsOf(text any) map[string]string {
	all := make(map[string]string)
	switch text := text.(type) {
	case string:
		all["other"] = text
	case map[string]any:
		for name, form := range text {
			if name != "description" {
				all[name] = form.(string)
			}
		}
	}
	return all
}

var placeholder = regexp.MustCompile(`\{\{\.[A-Z][A-Za-z]*\}\}`)

// placeholders returns the placeholders of a form.
func placeholders(form string) []string {
	all := placeholder.FindAllString(form, -1)
	slices.Sort(all)
	return slices.Compact(all)
}

// TestLanguages expects every language to have exactly the texts of English, with the same
// placeholders and with the plural forms of the language.
func TestLanguages(t *testing.T) {
	t.Parallel()
	english := forms(t, "texts/en.json")
	if got, want := len(texts().Languages()), len(locale.Languages()); got != want {
		t.Errorf("there are %d languages, and %d of the checkout", got, want)
	}
	for _, text := range texts().Languages() {
		file := "texts/" + text.Lang() + ".json"
		all := forms(t, file)
		for id, want := range english {
			if all[id] == nil {
				t.Errorf("%s lacks %s", file, id)
				continue
			}
			checkForms(t, file+" "+id, all[id], want["other"])
			if want["one"] != "" {
				checkPlural(t, text, id)
			} else if len(all[id]) != 1 {
				t.Errorf("%s %s has plural forms", file, id)
			}
		}
		for id := range all {
			if english[id] == nil {
				t.Errorf("%s has %s, which English lacks", file, id)
			}
		}
	}
}

// frenchSpace matches a space of French punctuation at which a line may break.
var frenchSpace = regexp.MustCompile(` [:;!?»%]|« `)

// checkForms checks the forms of a text against the English one.
func checkForms(t *testing.T, what string, forms map[string]string, english string) {
	t.Helper()
	for name, form := range forms {
		want := placeholders(english)
		if slices.Contains([]string{"zero", "one", "two"}, name) && !strings.Contains(form, "{{.Count}}") {
			want = slices.DeleteFunc(want, func(p string) bool { return p == "{{.Count}}" }) // it may be in words
		}
		if got := placeholders(form); !slices.Equal(got, want) {
			t.Errorf("%s (%s) has the placeholders %v, want %v", what, name, got, want)
		}
		if strings.HasPrefix(what, "texts/fr.json ") && frenchSpace.MatchString(form) {
			t.Errorf("%s (%s) is %q: a line may break before or after a mark; use U+202F or U+00A0", what, name, form)
		}
		if rest := placeholder.ReplaceAllString(form, ""); form == "" || strings.TrimSpace(form) != form || strings.ContainsAny(rest, "<>{}&") {
			t.Errorf("%s (%s) is %q: no markup, braces, or space at the ends", what, name, form)
		}
	}
}

// checkPlural requires a form of a text for every number.
func checkPlural(t *testing.T, text *locale.Text, id string) {
	t.Helper()
	for count := range 201 {
		for _, count := range []int{count, count * 1000, count * 1_000_000} {
			if text.T(id, locale.Values{"Count": count, "Time": "x"}) == id {
				t.Errorf("%s %s has no form for %d", text.Lang(), id, count)
				return
			}
		}
	}
}
