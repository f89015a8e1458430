package typescript_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// TestTypesAreThoseOfTheInterface compares the types of event.ts with the
// schemas of openapi.yaml that events use: names, members, their types, and
// which may be absent.
func TestTypesAreThoseOfTheInterface(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromFile("../../openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("src/event.ts")
	if err != nil {
		t.Fatal(err)
	}
	text := string(source)
	used := map[string]*openapi3.Schema{"EventType": doc.Components.Schemas["EventType"].Value}
	for _, name := range []string{"InvoiceData", "PaidInvoiceData", "PaymentData", "RefundData", "UnattributedData"} {
		for _, property := range doc.Components.Schemas[name].Value.Properties {
			collect(used, property)
		}
	}
	if len(used) < 10 {
		t.Errorf("only %d types are compared", len(used))
	}
	for name, schema := range used {
		if schema.Enum != nil {
			if got, want := literals(text, "export type "+name+" =", ";"), enum(schema); !slices.Equal(got, want) {
				t.Errorf("type %s has %q, openapi.yaml %q", name, got, want)
			}
			continue
		}
		got, want := members(text, name), properties(schema)
		if !slices.Equal(got, want) {
			t.Errorf("interface %s has\n%s\nopenapi.yaml gives\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// collect adds the named schemas below ref that TypeScript has a type for:
// objects and enumerations.
func collect(used map[string]*openapi3.Schema, ref *openapi3.SchemaRef) {
	if name := named(ref); name != "" {
		used[name] = ref.Value
	}
	if ref.Value.Items != nil {
		collect(used, ref.Value.Items)
	}
	for _, property := range ref.Value.Properties {
		collect(used, property)
	}
}

// named returns the name of the type for a schema, or "" if it has none.
func named(ref *openapi3.SchemaRef) string {
	if ref.Ref != "" && (ref.Value.Enum != nil || ref.Value.Type.Is("object")) {
		return ref.Ref[strings.LastIndex(ref.Ref, "/")+1:]
	}
	return ""
}

// properties returns the members of an object's schema as TypeScript declares
// them, sorted.
func properties(schema *openapi3.Schema) (lines []string) {
	for name, ref := range schema.Properties {
		if !slices.Contains(schema.Required, name) {
			name += "?"
		}
		lines = append(lines, name+": "+typeOf(ref)+";")
	}
	slices.Sort(lines)
	return lines
}

func typeOf(ref *openapi3.SchemaRef) string {
	if name := named(ref); name != "" {
		return name
	}
	switch s := ref.Value; {
	case s.Type.Is("array"):
		return typeOf(s.Items) + "[]"
	case s.Type.Is("integer"):
		return "number"
	case s.Enum != nil:
		var values []string
		for _, v := range s.Enum {
			values = append(values, fmt.Sprintf("%q", v))
		}
		return strings.Join(values, " | ")
	default:
		return s.Type.Slice()[0]
	}
}

// members returns the members of an interface in TypeScript, sorted.
func members(text, name string) (lines []string) {
	_, body, _ := strings.Cut(text, "export interface "+name+" {\n")
	body, _, _ = strings.Cut(body, "\n}")
	for line := range strings.Lines(body) {
		lines = append(lines, strings.TrimSpace(line))
	}
	slices.Sort(lines)
	return lines
}

// enum returns the values of an enumeration.
func enum(schema *openapi3.Schema) (values []string) {
	for _, v := range schema.Enum {
		values = append(values, fmt.Sprint(v))
	}
	return values
}

// literals returns the string literals of TypeScript between two texts.
func literals(text, begin, end string) (values []string) {
	_, body, _ := strings.Cut(text, begin)
	body, _, _ = strings.Cut(body, end)
	for _, found := range regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(body, -1) {
		values = append(values, found[1])
	}
	return values
}
