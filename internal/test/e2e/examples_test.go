package e2e

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

var update = flag.Bool("update", false, "write the examples of openapi.yaml that differ from what TestExtraExamples sends and receives")

// TestExtraExamples compares the examples in openapi.yaml with requests and responses of a
// running service. Every operation and webhook must have them.
func TestExtraExamples(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.play()
	doc := readExamples(t, quittance.OpenAPI)
	for name, e := range s.examples {
		for _, part := range e.parts(name) {
			part.value = s.publish(part.value)
			got, want := doc.example(part), kindOf("", decodeExample(t, part))
			if diff := cmp.Diff(want, kindOf("", got)); diff != "" && *update {
				doc.set(part)
			} else if diff != "" {
				t.Errorf("%s: openapi.yaml differs from the run; write it with -update (-run +openapi.yaml):\n%s", part.name, diff)
			}
		}
	}
	doc = readExamples(t, doc.text())
	for _, op := range slices.Sorted(maps.Keys(doc.operations)) {
		doc.complete(op)
	}
	if *update && !t.Failed() {
		expect.OK(t, os.WriteFile(testdeps.Repo("openapi.yaml"), doc.text(), 0o644))
	}
}

// example is a request with its response.
type example struct {
	method, path string // path includes the query
	header       []string
	request      []byte
	status       int
	mediaType    string // of the response
	response     []byte
}

// part is a text of an example, as openapi.yaml has it.
type part struct {
	name  string // in components/examples; of a curl command, "<operation>.curl"
	op    string
	at    string // "request", "response" or "curl"
	code  int    // of the response
	media string
	value string
}

// parts returns the parts of an example. The example is named after an operation, an operation and the
// kind of its response, or a problem.
func (e example) parts(name string) []part {
	op, _, _ := strings.Cut(name, ".")
	if strings.HasPrefix(name, "problem.") {
		return []part{{name: name, at: "problem", media: e.mediaType, value: string(e.response)}}
	}
	var all []part
	if e.method != "" {
		all = append(all, part{name: name + ".curl", op: op, at: "curl", value: e.curl()})
	}
	if len(e.request) > 0 && json.Valid(e.request) {
		all = append(all, part{name: name + ".request", op: op, at: "request", media: "application/json", value: string(e.request)})
	}
	if len(e.response) > 0 && !isImage(e.mediaType) {
		all = append(all, part{name: name + ".response", op: op, at: "response", code: e.status, media: e.mediaType, value: string(e.response)})
	}
	return all
}

// isImage reports whether a media type is an image type. The document does not show the bytes of images.
func isImage(mediaType string) bool { return strings.HasPrefix(mediaType, "image/") }

// curl returns the curl command of the request.
func (e example) curl() string {
	var b strings.Builder
	b.WriteString("curl")
	if e.mediaType == "text/event-stream" {
		b.WriteString(" -N")
	}
	if e.method == http.MethodHead {
		b.WriteString(" -I")
	} else if e.method != http.MethodGet && (e.method != http.MethodPost || len(e.request) == 0) {
		b.WriteString(" -X " + e.method)
	}
	url := baseURL + e.path
	if strings.ContainsAny(url, "?&[]") {
		url = "'" + url + "'"
	}
	b.WriteString(" " + url)
	for i := 0; i < len(e.header); i += 2 {
		quote := "'"
		if strings.Contains(e.header[i+1], "$") {
			quote = `"`
		}
		fmt.Fprintf(&b, " \\\n  -H %s%s: %s%s", quote, e.header[i], e.header[i+1], quote)
	}
	switch body := string(e.request); {
	case body == "":
	case json.Valid(e.request):
		b.WriteString(" \\\n  -d '" + body + "'")
	case strings.Contains(body, "delivery-status"):
		b.WriteString(" \\\n  --data-binary @bounce.eml")
	default:
		b.WriteString(" \\\n  --data-binary @logo.png")
	}
	return b.String() + "\n"
}

// decodeExample returns the value of a JSON part, and the text of any other part.
func decodeExample(tb testing.TB, p part) any {
	tb.Helper()
	if !strings.HasSuffix(p.media, "json") {
		return p.value
	}
	var v any
	if err := json.Unmarshal([]byte(p.value), &v); err != nil {
		tb.Fatalf("%s: %v", p.name, err)
	}
	return v
}

// absent are members that are optional or depend on the build, and opaque are texts without a fixed form.
var (
	absent = []string{"lookupMs", "connectMs", "handshakeMs", "answerMs", "commit"}
	opaque = []string{"nextCursor", "requestId", "version"}
)

// kindOf replaces values that differ between runs by their kind: numbers, ids, hashes, addresses, secrets and cursors.
func kindOf(name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		all := make(map[string]any, len(v))
		for name, member := range v {
			if !slices.Contains(absent, name) {
				all[name] = kindOf(name, member)
			}
		}
		return all
	case []any:
		if name == "costs" { // of one day, or of two around midnight
			v = v[:min(1, len(v))]
		}
		all := make([]any, len(v))
		for i, element := range v {
			all[i] = kindOf("", element)
		}
		if name == "entries" { // a timeline: entries of the same second have no fixed order
			slices.SortFunc(all, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
		return all
	case string:
		if slices.Contains(opaque, name) {
			return "opaque"
		}
		return textKind(v)
	case float64, uint64, int64, int:
		return "number"
	default:
		return v
	}
}

var varying = []struct {
	form *regexp.Regexp
	kind string
}{
	{regexp.MustCompile(`(?m)^id: \S+$`), "id: <cursor>"}, // of a stream
	{regexp.MustCompile(`\b([a-z]{2,4})_[0-9a-hjkmnp-tv-z]{26}\b`), "<$1>"},
	{regexp.MustCompile(`\b0x[0-9a-fA-F]{40}\b`), "<address>"},
	{regexp.MustCompile(`\b0x[0-9a-fA-F]{64}\b`), "<hash>"},
	{regexp.MustCompile(`\b0x[0-9a-fA-F]+\b`), "<data>"},
	{regexp.MustCompile(`\bwhsec_[A-Za-z0-9+/]{43}=`), "<secret>"},
	{regexp.MustCompile(`\bqk_(live|test)_[A-Za-z0-9_]+`), "<key>"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "<digest>"},
	{regexp.MustCompile(`[0-9]+`), "<digits>"},
}

func textKind(text string) string {
	for _, v := range varying {
		text = v.form.ReplaceAllString(text, v.kind)
	}
	return text
}

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
