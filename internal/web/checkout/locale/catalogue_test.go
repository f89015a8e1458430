package locale

import (
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/webtest"
)

// Every language has the texts of English, with the same placeholders and its plural forms.
func TestEveryLanguageIsComplete(t *testing.T) {
	var languages []string
	for _, text := range Languages() {
		languages = append(languages, text.Lang())
	}
	webtest.Texts(t, files, languages, func(language, id string, values map[string]any) bool {
		_, err := Named(language).localizer.Localize(config(id, values, values[Count]))
		return err == nil
	})
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
	var english map[string]any
	expect.OK(t, json.Unmarshal(expect.Must(files.ReadFile("en.json")), &english))
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
