package webtest

import (
	"encoding/json"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	placeholder = regexp.MustCompile(`\{\{\.([A-Z][A-Za-z]*)\}\}`)
	// frenchSpace matches a space of French punctuation at which a line may break.
	frenchSpace = regexp.MustCompile(` [:;!?»%]|« `)
	lineOfID    = regexp.MustCompile(`(?m)^\s*"([^"]+)": `)
)

// placeholders returns the names of the placeholders of a form, sorted.
func placeholders(form string) (names []string) {
	for _, match := range placeholder.FindAllStringSubmatch(form, -1) {
		names = append(names, match[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// formsOf returns the plural forms of each text of a file, with "other" for the usual form. Of two texts with an id,
// the last would be shown, so the test fails.
func formsOf(t *testing.T, folder fs.FS, name string) map[string]map[string]string {
	t.Helper()
	body, err := fs.ReadFile(folder, name)
	texts, all := make(map[string]json.RawMessage), make(map[string]map[string]string)
	if err == nil {
		err = json.Unmarshal(body, &texts)
	}
	for id, text := range texts {
		var form string
		forms := make(map[string]string)
		if json.Unmarshal(text, &form) == nil {
			forms["other"] = form
		} else if err == nil {
			err = json.Unmarshal(text, &forms)
		}
		delete(forms, "description")
		all[id] = forms
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	seen := make(map[string]bool)
	for _, match := range lineOfID.FindAllStringSubmatch(string(body), -1) {
		if seen[match[1]] && all[match[1]] != nil {
			t.Errorf("%s has %s twice", name, match[1])
		}
		seen[match[1]] = true
	}
	return all
}

// Texts expects each language's file in a folder to have exactly the texts of English, with the same placeholders, and
// with the plural forms of the language: has reports whether a text has a form for values.
func Texts(t *testing.T, folder fs.FS, languages []string, has func(language, id string, values map[string]any) bool) {
	t.Helper()
	english := formsOf(t, folder, "en.json")
	for _, language := range languages {
		all := formsOf(t, folder, language+".json")
		for id := range all {
			if english[id] == nil {
				t.Errorf("%s has %s, which English lacks", language, id)
			}
		}
		for id, want := range english {
			names := placeholders(want["other"])
			checkForms(t, language, id, all[id], names)
			if len(want) > 1 || slices.Contains(names, "Count") {
				checkPlural(t, language, id, names, has)
			} else if len(all[id]) != 1 {
				t.Errorf("%s %s has %d forms, want one", language, id, len(all[id]))
			}
		}
	}
}

// checkPlural requires a form of a text for every number.
func checkPlural(t *testing.T, language, id string, names []string, has func(language, id string, values map[string]any) bool) {
	t.Helper()
	values := make(map[string]any)
	for _, name := range names {
		values[name] = "x"
	}
	for n := range 201 {
		for _, values["Count"] = range []int{n, n * 1000, n * 1_000_000} {
			if !has(language, id, values) {
				t.Fatalf("%s %s has no form for %d", language, id, values["Count"])
			}
		}
	}
}

// checkForms checks the forms of a text.
func checkForms(t *testing.T, language, id string, forms map[string]string, want []string) {
	t.Helper()
	for name, form := range forms {
		have := placeholders(form)
		if slices.Contains([]string{"zero", "one", "two"}, name) && !slices.Contains(have, "Count") && slices.Contains(want, "Count") {
			have = append(have, "Count") // the form may spell the number in words
			slices.Sort(have)
		}
		if !slices.Equal(have, want) {
			t.Errorf("%s %s (%s) has the placeholders %v, want %v", language, id, name, have, want)
		}
		if language == "fr" && frenchSpace.MatchString(form) {
			t.Errorf("fr %s (%s) is %q: a line may break before or after a mark; use U+202F or U+00A0", id, name, form)
		}
		if rest := placeholder.ReplaceAllString(form, ""); strings.ContainsAny(rest, "<>&{}") || strings.TrimSpace(form) != form || form == "" {
			t.Errorf("%s %s (%s) is %q: no markup, braces, or space at the ends", language, id, name, form)
		}
	}
}
