package e2e

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/quittance/quittance/internal/test/expect"
)

// exampleDocument is openapi.yaml.
type exampleDocument struct {
	testing.TB
	head       []string                    // lines before the examples
	operations map[string]exampleOperation // by id
	values     map[string]any              // of components/examples
	entries    map[string]string           // the texts of values
}

// exampleOperation is an operation or a webhook.
type exampleOperation struct {
	id     string
	parsed map[string]any
}

// examplesMarker starts the last part of openapi.yaml.
const examplesMarker = "  # Requests and responses of a run. Written by: go test ./internal/test/e2e -run TestExtraExamples -update\n  examples:\n"

func readExamples(tb testing.TB, text []byte) *exampleDocument {
	tb.Helper()
	var parsed struct {
		Paths, Webhooks map[string]map[string]any
		Components      struct {
			Examples map[string]struct{ Value any }
		}
	}
	expect.OK(tb, yaml.Unmarshal(text, &parsed))
	d := &exampleDocument{TB: tb, operations: make(map[string]exampleOperation), values: make(map[string]any), entries: make(map[string]string)}
	for _, paths := range []map[string]map[string]any{parsed.Paths, parsed.Webhooks} {
		for _, methods := range paths {
			for _, op := range methods {
				if op, ok := op.(map[string]any); ok && op["operationId"] != nil {
					id := op["operationId"].(string)
					d.operations[id] = exampleOperation{id, op}
				}
			}
		}
	}
	for name, e := range parsed.Components.Examples {
		d.values[name] = e.Value
	}
	head, generated, _ := strings.Cut(string(text), examplesMarker)
	d.head = strings.Split(strings.TrimRight(head, "\n"), "\n")
	name := ""
	for line := range strings.Lines(generated) {
		if found := exampleName.FindStringSubmatch(line); found != nil {
			name = found[1]
		}
		d.entries[name] += line
	}
	return d
}

var exampleName = regexp.MustCompile(`^    (\S+):\n$`)

// example returns the value of a part in openapi.yaml, or nil if its operation does not refer to it.
func (d *exampleDocument) example(p part) any {
	op := d.operations[p.op].parsed
	switch p.at {
	case "curl":
		return dig(op, "x-codeSamples", 0, "source")
	case "request":
		if dig(op, "requestBody", "content", p.media, "examples", "run", "$ref") != reference(p.name) {
			return nil
		}
	case "response":
		if dig(op, "responses", fmt.Sprint(p.code), "content", p.media, "examples", "run", "$ref") != reference(p.name) {
			return nil
		}
	}
	return d.values[p.name]
}

// complete fails the test if an operation lacks an example of its JSON request, its command,
// or a media type of its successful response.
func (d *exampleDocument) complete(id string) {
	d.Helper()
	op := d.operations[id].parsed
	if schema := dig(op, "requestBody", "content", "application/json"); schema != nil && dig(schema, "examples") == nil {
		d.Errorf("openapi.yaml: the request of %s has no example", id)
	}
	if strings.HasPrefix(id, "on") {
		return // a webhook
	}
	if dig(op, "x-codeSamples") == nil {
		d.Errorf("openapi.yaml: the operation %s has no command", id)
	}
	responses, _ := op["responses"].(map[string]any)
	media, shown := 0, 0
	for status, response := range responses {
		content, _ := dig(response, "content").(map[string]any)
		if !strings.HasPrefix(status, "2") || len(content) == 0 {
			continue
		}
		content = maps.Clone(content)
		maps.DeleteFunc(content, func(kind string, _ any) bool { return isImage(kind) })
		media = max(media, len(content))
		n := 0
		for _, m := range content {
			if dig(m, "examples") != nil {
				n++
			}
		}
		shown = max(shown, n)
	}
	if shown < media {
		d.Errorf("openapi.yaml: the response of %s has examples of %d of %d media types", id, shown, media)
	}
}

func reference(name string) string { return "#/components/examples/" + name }

// dig returns a value in nested maps and lists, or nil.
func dig(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[step]
		case int:
			list, _ := v.([]any)
			if step >= len(list) {
				return nil
			}
			v = list[step]
		}
	}
	return v
}

// set writes a part into the document.
func (d *exampleDocument) set(p part) {
	d.Helper()
	switch p.at {
	case "curl":
		d.setCommand(p)
		return
	case "request":
		d.refer(p, "      requestBody:")
	case "response":
		d.refer(p, fmt.Sprintf("        %q:", fmt.Sprint(p.code)))
	}
	var value any = p.value
	if strings.HasSuffix(p.media, "json") {
		var members yaml.MapSlice // keeps the order
		if err := yaml.UnmarshalWithOptions([]byte(p.value), &members, yaml.UseOrderedMap()); err != nil {
			d.Fatalf("%s: %v", p.name, err)
		}
		value = members
	}
	var text bytes.Buffer
	expect.OK(d, yaml.NewEncoder(&text, yaml.Indent(2), yaml.IndentSequence(true), yaml.UseLiteralStyleIfMultiline(true)).Encode(yaml.MapSlice{{Key: "value", Value: value}}))
	d.entries[p.name] = "    " + p.name + ":\n" + indented(text.String(), "      ")
}

// indented indents the lines of a text that are not empty.
func indented(text, indent string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			b.WriteString(indent)
		}
		b.WriteString(line)
	}
	return b.String()
}

// block returns the range of an operation's lines.
func (d *exampleDocument) block(op string) (first, end int) {
	d.Helper()
	first = slices.Index(d.head, "      operationId: "+op)
	if first < 0 {
		d.Fatalf("openapi.yaml has no line with the operationId %s", op)
	}
	end = first + 1
	for i := end; i < len(d.head) && (d.head[i] == "" || strings.HasPrefix(d.head[i], "      ")); i++ {
		if d.head[i] != "" {
			end = i + 1
		}
	}
	return first, end
}

// refer adds a reference from an operation to an example, after the schema below a line.
func (d *exampleDocument) refer(p part, below string) {
	d.Helper()
	first, end := d.block(p.op)
	at := slices.Index(d.head[first:end], below)
	if at < 0 {
		d.Fatalf("openapi.yaml: the operation %s has no line %q", p.op, below)
	}
	media := false
	for i := first + at + 1; i < end; i++ {
		line := strings.TrimLeft(d.head[i], " ")
		media = media || line == p.media+":"
		if !media || !strings.HasPrefix(line, "schema:") {
			continue
		}
		indent := d.head[i][:len(d.head[i])-len(line)]
		if !strings.HasPrefix(d.head[i+1], indent+"examples:") {
			d.head = slices.Insert(d.head, i+1, "")
		}
		d.head[i+1] = indent + `examples: { run: { $ref: "` + reference(p.name) + `" } }`
		return
	}
	d.Fatalf("openapi.yaml: the operation %s has no schema below %q", p.op, below)
}

// setCommand writes the command as the last member of its operation.
func (d *exampleDocument) setCommand(p part) {
	d.Helper()
	first, end := d.block(p.op)
	if at := slices.Index(d.head[first:end], "      x-codeSamples:"); at >= 0 {
		d.head = slices.Delete(d.head, first+at, end)
		end = first + at
	}
	lines := strings.Split(strings.TrimSuffix(indented(p.value, "            "), "\n"), "\n")
	d.head = slices.Insert(d.head, end, append([]string{"      x-codeSamples:", "        - lang: Shell", "          label: curl", "          source: |"}, lines...)...)
}

// text returns openapi.yaml.
func (d *exampleDocument) text() []byte {
	var b bytes.Buffer
	b.WriteString(strings.Join(d.head, "\n") + "\n\n" + examplesMarker)
	for _, name := range slices.Sorted(maps.Keys(d.entries)) {
		b.WriteString(d.entries[name])
	}
	return b.Bytes()
}
