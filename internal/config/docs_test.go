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
)

// TestSettingsAreDocumented compares the settings that a file can have with the
// tables of docs/configuration.md.
func TestSettingsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	declared := make(map[string]bool)
	addSettings(declared, reflect.TypeFor[file](), "")
	delete(declared, "chains[].agree") // the former name of quorum

	documented := make(map[string]bool)
	for _, table := range strings.Split(string(text), "\n| setting |")[1:] {
		table, _, _ = strings.Cut(table, "\n\n")
		for _, row := range strings.Split(table, "\n| ")[1:] {
			cell, _, _ := strings.Cut(row, " |")
			for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
				documented[name[1]] = true
			}
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(declared)), slices.Sorted(maps.Keys(documented))); diff != "" {
		t.Errorf("settings in the code (-) and in docs/configuration.md (+):\n%s", diff)
	}
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
