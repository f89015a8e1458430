package config

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/quittance/quittance/internal/spelling"
)

// suggest continues an error about the unknown setting at a token: it names the nearest setting in its place, else the
// nearest in another place. It returns "" without one.
func suggest(raw []byte, at *token.Token) string {
	all, here := settings(reflect.TypeFor[file](), ""), parentOf(raw, at)
	var siblings, others []string
	for _, path := range all {
		if parent, name := split(path); parent == here {
			siblings = append(siblings, name)
		} else {
			others = append(others, name)
		}
	}
	if similar := spelling.Nearest(at.Value, siblings); similar != "" {
		return spelling.DidYouMean(similar)
	}
	if similar := spelling.Nearest(at.Value, others); similar != "" {
		place := slices.IndexFunc(all, func(path string) bool { parent, name := split(path); return name == similar && parent != here })
		return spelling.DidYouMean(strings.TrimPrefix(all[place], "."))
	}
	return ""
}

// split returns the path of the mapping that holds a setting, and the setting's name.
func split(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '.')
	return path[:i], path[i+1:]
}

var index = regexp.MustCompile(`\[\d+\]`)

// parentOf returns the path of the mapping that holds the setting at a token, such as .chains[].rpc[].
func parentOf(raw []byte, at *token.Token) string {
	parsed, err := parser.ParseBytes(raw, 0)
	if err != nil {
		return ""
	}
	found := &settingFinder{line: at.Position.Line, column: at.Position.Column}
	for _, document := range parsed.Docs {
		ast.Walk(found, document.Body)
	}
	parent, _ := split(index.ReplaceAllString("."+strings.TrimPrefix(found.path, "$."), "[]"))
	return parent
}

// settingFinder finds the path of the setting at a position.
type settingFinder struct {
	line, column int
	path         string
}

// Visit implements ast.Visitor.
func (f *settingFinder) Visit(node ast.Node) ast.Visitor {
	if value, ok := node.(*ast.MappingValueNode); ok {
		if at := value.Key.GetToken().Position; at.Line == f.line && at.Column == f.column {
			f.path = value.Key.GetPath()
		}
	}
	return f
}

// mappings are the mappings of the types that UnmarshalYAML reads.
var mappings = map[reflect.Type]reflect.Type{
	reflect.TypeFor[location]():     reflect.TypeFor[locationMapping](),
	reflect.TypeFor[databaseFile](): reflect.TypeFor[databaseMapping](),
	reflect.TypeFor[nodeFile]():     reflect.TypeFor[nodeMapping](),
}

// settings returns the paths of all settings in a type at a path, each with a leading dot.
func settings(t reflect.Type, path string) (all []string) {
	switch t.Kind() {
	case reflect.Pointer:
		return settings(t.Elem(), path)
	case reflect.Slice:
		return settings(t.Elem(), path+"[]")
	case reflect.Struct:
	default:
		return nil
	}
	if mapping, ok := mappings[t]; ok {
		t = mapping
	}
	for i := range t.NumField() {
		f := t.Field(i)
		at := path
		if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); name != "" {
			at += "." + name
			all = append(all, at)
		}
		all = append(all, settings(f.Type, at)...)
	}
	return all
}
