package e2e

import (
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
