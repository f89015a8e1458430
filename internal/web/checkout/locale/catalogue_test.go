package locale

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/test/expect"
)

// entry is a text of a file: one form, or several.
type entry map[string]string

func (e *entry) UnmarshalJSON(body []byte) error {
	var form string
	if json.Unmarshal(body, &form) == nil {
		*e = entry{"other": form}
		return nil
	}
	return json.Unmarshal(body, (*map[string]string)(e))
}

// forms returns the plural forms.
func (e entry) forms() map[string]string {
	forms := maps.Clone(map[string]string(e))
	delete(forms, "description")
	return forms
}

// isPlural reports whether the text has plural forms.
func (e entry) isPlural() bool {
	return len(e.forms()) > 1 || strings.Contains(e["other"], "{{.Count}}")
}

func readFile(t *testing.T, name string) map[string]entry {
	t.Helper()
	body, err := files.ReadFile(name)
	expect.OK(t, err)
	var texts map[string]entry
	if err := json.Unmarshal(body, &texts); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return texts
}

var placeholder = regexp.MustCompile(`\{\{\.([A-Z][A-Za-z]*)\}\}`)

func placeholders(form string) []string {
	var names []string
	for _, match := range placeholder.FindAllStringSubmatch(form, -1) {
		names = append(names, match[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Every language has the texts of English, with the same placeholders and its plural forms.
func TestEveryLanguageIsComplete(t *testing.T) {
	english := readFile(t, "en.json")
	for _, text := range Languages() {
		texts := readFile(t, text.Lang()+".json")
		checkTwice(t, text.Lang()+".json")
		for id, want := range english {
			got, ok := texts[id]
			if !ok {
				t.Errorf("%s lacks %s", text.Lang(), id)
				continue
			}
			checkEntry(t, text, id, want, got)
		}
		for id := range texts {
			if _, ok := english[id]; !ok {
				t.Errorf("%s has %s, which English has not", text.Lang(), id)
			}
		}
	}
}

var lineOfID = regexp.MustCompile(`(?m)^\s*"([^"]+)": `)

// checkTwice requires that each id occurs once in a file: of two texts, the last would be shown.
func checkTwice(t *testing.T, name string) {
	t.Helper()
	body, err := files.ReadFile(name)
	expect.OK(t, err)
	seen := make(map[string]bool)
	for _, match := range lineOfID.FindAllStringSubmatch(string(body), -1) {
		if seen[match[1]] {
			t.Errorf("%s has %s twice", name, match[1])
		}
		seen[match[1]] = true
	}
}

// frenchSpace matches a space of French punctuation at which a line may break.
var frenchSpace = regexp.MustCompile(` [:;!?»%]|« `)

// checkEntry checks one text of a language.
func checkEntry(t *testing.T, text *Text, id string, english, got entry) {
	t.Helper()
	want := placeholders(english["other"])
	for form, body := range got.forms() {
		have := placeholders(body)
		if slices.Contains([]string{"zero", "one", "two"}, form) && !slices.Contains(have, Count) && slices.Contains(want, Count) {
			have = append(have, Count) // the form may spell the number in words
			slices.Sort(have)
		}
		if !slices.Equal(have, want) {
			t.Errorf("%s %s (%s) has the placeholders %v, want %v", text.Lang(), id, form, have, want)
		}
		if text.Lang() == "fr" && frenchSpace.MatchString(body) {
			t.Errorf("fr %s (%s) is %q: a line may break before or after a mark; use U+202F or U+00A0", id, form, body)
		}
		if rest := placeholder.ReplaceAllString(body, ""); strings.ContainsAny(rest, "<>&{}") || strings.TrimSpace(body) != body || body == "" {
			t.Errorf("%s %s (%s) is %q: no markup, braces, or space at the ends", text.Lang(), id, form, body)
		}
	}
	if !english.isPlural() {
		if len(got.forms()) != 1 {
			t.Errorf("%s %s has plural forms", text.Lang(), id)
		}
		return
	}
	values := Values{}
	for _, name := range want {
		values[name] = "x"
	}
	for _, count := range slices.Concat(hundreds(), []int{1000, 1_000_000, 2_000_000}) {
		values[Count] = count
		if _, err := text.localizer.Localize(config(id, values, count)); err != nil {
			t.Errorf("%s %s for %d: %v", text.Lang(), id, count, err)
			return
		}
	}
}

func hundreds() []int {
	counts := make([]int, 201)
	for i := range counts {
		counts[i] = i
	}
	return counts
}

var (
	quoted = regexp.MustCompile("[\"'`]([a-z][A-Za-z]*(?:\\.[A-Za-z]+)+)[\"'`]")
	word   = regexp.MustCompile("[\"'`]([a-z][A-Za-z.]*)[\"'`]")
	called = regexp.MustCompile("\\bt\\(\"([A-Za-z.]+)\"") // a call of t in a module of web
	// notIDs are endings of names of files.
	notIDs = []string{".html", ".css", ".js", ".ts", ".svg", ".json", ".sol", ".go", ".png"}
)

// usedIDs returns the ids in the sources of the pages, with one file that uses each.
func usedIDs(t *testing.T, groups map[string]bool) map[string]string {
	t.Helper()
	used := map[string]string{"language.name": "locale.go", "time.layout": "locale.go"}
	sources := os.DirFS("..")
	err := fs.WalkDir(sources, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && slices.Contains([]string{"node_modules", "browsertest", "testdata"}, d.Name()) {
			return cmpError(err)
		}
		if d.IsDir() || !slices.Contains([]string{".go", ".html", ".js", ".ts"}, path.Ext(name)) || strings.HasSuffix(name, "_test.go") || isBundle(sources, name) {
			return nil
		}
		body, err := fs.ReadFile(sources, name)
		for _, id := range idsIn(name, string(body)) {
			group, _, _ := strings.Cut(id, ".")
			if groups[group] && !slices.Contains(notIDs, path.Ext(id)) {
				used[id] = name
			}
		}
		return err
	})
	expect.OK(t, err)
	return used
}

// idsIn returns the quoted ids in a source. Modules of web leave out ScriptPrefix.
func idsIn(name, body string) []string {
	var ids []string
	if path.Ext(name) == ".ts" {
		for _, match := range word.FindAllStringSubmatch(body, -1) {
			if _, ok := English().scripts[ScriptPrefix+match[1]]; ok {
				ids = append(ids, ScriptPrefix+match[1])
			}
		}
		for _, match := range called.FindAllStringSubmatch(body, -1) {
			ids = append(ids, ScriptPrefix+match[1])
		}
		return ids
	}
	for _, match := range quoted.FindAllStringSubmatch(body, -1) {
		ids = append(ids, match[1])
	}
	return ids
}

func cmpError(err error) error {
	if err != nil {
		return err
	}
	return fs.SkipDir
}

// isBundle reports whether a file is made from a module of web.
func isBundle(sources fs.FS, name string) bool {
	if path.Dir(name) != "static" {
		return false
	}
	_, err := fs.Stat(sources, "web/"+strings.TrimSuffix(path.Base(name), ".js")+".ts")
	return err == nil
}

// Every id in a source has a text, and every text is used.
func TestNoTextIsMissingOrUnused(t *testing.T) {
	english := readFile(t, "en.json")
	groups := make(map[string]bool)
	for id := range english {
		group, _, _ := strings.Cut(id, ".")
		groups[group] = true
	}
	used := usedIDs(t, groups)
	for id, name := range used {
		if _, ok := english[id]; !ok {
			t.Errorf("%s uses %s, which has no text", name, id)
		}
	}
	for id := range english {
		if used[id] == "" {
			t.Errorf("%s is not used", id)
		}
	}
}

// A duration may end in the dot of an abbreviation, which a sentence must not double.
func TestDurationsEndNoSentenceTwice(t *testing.T) {
	for _, text := range Languages() {
		for _, unit := range []string{"second", "minute", "hour", "day"} {
			duration := text.T("script.unit."+unit, Values{"N": int64(20)})
			if got := text.T("progress.usual", Values{"Duration": duration}); strings.Contains(got, "..") {
				t.Errorf("%s: %s", text.Lang(), got)
			}
		}
	}
}
