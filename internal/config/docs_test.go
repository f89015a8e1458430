package config

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

// TestSettingsAreDocumented compares the settings that a file can have with the tables of docs/configuration.md.
func TestSettingsAreDocumented(t *testing.T) {
	compareSettings(t, "configuration.md", readSettings(t, "configuration.md"))
}

// TestChangesAreDocumented checks that docs/changing.md describes for every setting what a change does
// to live state. It has rows for whole lists, such as chains[], too.
func TestChangesAreDocumented(t *testing.T) {
	documented := readSettings(t, "changing.md")
	maps.DeleteFunc(documented, func(name string, _ bool) bool { return strings.HasSuffix(name, "[]") })
	compareSettings(t, "changing.md", documented)
}

// readSettings returns the settings that a page documents.
func readSettings(t *testing.T, page string) map[string]bool {
	t.Helper()
	text := expect.Must(os.ReadFile(testdeps.Repo("docs/" + page)))
	return documentedSettings(string(text))
}

// compareSettings fails the test unless a page documents exactly the settings that a file can have.
func compareSettings(t *testing.T, page string, documented map[string]bool) {
	t.Helper()
	declared := make(map[string]bool)
	addSettings(declared, reflect.TypeFor[file](), "")
	if diff := cmp.Diff(slices.Sorted(maps.Keys(declared)), slices.Sorted(maps.Keys(documented))); diff != "" {
		t.Errorf("settings in the code (-) and in docs/%s (+):\n%s", page, diff)
	}
}

// documentedSettings returns the settings in the first cells of the tables of a page.
func documentedSettings(text string) map[string]bool {
	documented := make(map[string]bool)
	for _, table := range strings.Split(text, "\n| setting |")[1:] {
		table, _, _ = strings.Cut(table, "\n\n")
		for _, row := range strings.Split(table, "\n| ")[1:] {
			cell, _, _ := strings.Cut(row, " |")
			for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
				documented[name[1]] = true
			}
		}
	}
	return documented
}

// addSettings adds the paths of the settings that a structure has below path.
func addSettings(to map[string]bool, of reflect.Type, path string) {
	for i := range of.NumField() {
		name, options, _ := strings.Cut(of.Field(i).Tag.Get("yaml"), ",")
		kind, below := of.Field(i).Type, path+name+"."
		if kind.Kind() == reflect.Slice {
			kind, below = kind.Elem(), path+name+"[]."
		}
		switch {
		case options == "inline":
			addSettings(to, kind, path)
		case kind == reflect.TypeFor[databaseFile]():
			to[path+name], to[below+"readOnly"] = true, true
		case kind == reflect.TypeFor[nodeFile]():
			to[path+name] = true
			addSettings(to, reflect.TypeFor[nodeSettings](), below)
		case kind.Kind() == reflect.Struct && kind != reflect.TypeFor[location]():
			addSettings(to, kind, below)
		default:
			to[path+name] = true
		}
	}
}
