package dashboard

import (
	"encoding/json"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// forms returns the forms of each text of a file: one, or those by number.
func forms(t *testing.T, file string) map[string][]string {
	t.Helper()
	body, err := textFiles.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	if _, err := decoder.Token(); err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]string)
	for decoder.More() {
		id, err := decoder.Token()
		if err != nil {
			t.Fatal(err)
		}
		var text any
		if err := decoder.Decode(&text); err != nil {
			t.Fatal(err)
		}
		if all[id.(string)] != nil {
			t.Errorf("%s has %s twice", file, id)
		}
		switch text := text.(type) {
		case string:
			all[id.(string)] = []string{text}
		case map[string]any:
			for name, form := range text {
				if name != "description" {
					all[id.(string)] = append(all[id.(string)], form.(string))
				}
			}
		}
	}
	return all
}

var placeholder = regexp.MustCompile(`\{\{\.[A-Z][A-Za-z]*\}\}`)

// placeholders returns the placeholders of a text's forms.
func placeholders(forms []string) []string {
	all := placeholder.FindAllString(strings.Join(forms, " "), -1)
	slices.Sort(all)
	return slices.Compact(all)
}

// ofOperator begin the ids of texts that other languages may lack: those of the operator's
// pages, which nobody else sees, and those of a development service.
var ofOperator = []string{"nav.operator", "operator.", "chain.", "merchants.", "audit.", "nav.scenarios", "scenarios."}

// TestLanguages requires the texts of English of every language, with the same placeholders, and
// no others.
func TestLanguages(t *testing.T) {
	t.Parallel()
	english := forms(t, "texts/en.json")
	files, err := fs.Glob(textFiles, "texts/*.json")
	if err != nil || len(files) < 2 {
		t.Fatalf("there are the files %v, %v", files, err)
	}
	for _, file := range files {
		texts := forms(t, file)
		for id, want := range english {
			switch got := texts[id]; {
			case got == nil && slices.ContainsFunc(ofOperator, func(prefix string) bool { return strings.HasPrefix(id, prefix) }):
			case got == nil:
				t.Errorf("%s lacks %s", file, id)
			case !slices.Equal(placeholders(got), placeholders(want)):
				t.Errorf("%s of %s has the placeholders %v, want %v", id, file, placeholders(got), placeholders(want))
			case len(got) != len(want):
				t.Errorf("%s of %s has %d forms, want %d", id, file, len(got), len(want))
			}
		}
		for id := range texts {
			if english[id] == nil {
				t.Errorf("%s has %s, which English lacks", file, id)
			}
		}
	}
}
