package apidocs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/quittance/quittance/internal/web/apidocs/samples"
)

// withSamples returns an OpenAPI document with code in Go and TypeScript before the code for the shell, and with links to
// the guides that the service has.
func withSamples(document []byte) []byte {
	const member = "\n      x-codeSamples:\n"
	var out bytes.Buffer
	begin := 0
	operations := operationID.FindAllSubmatchIndex(document, -1)
	for i, found := range operations {
		at, end := found[1], len(document)
		if i+1 < len(operations) {
			end = operations[i+1][0]
		}
		code := samplesOf(string(document[found[2]:found[3]]))
		if has := bytes.Index(document[at:end], []byte(member)); has >= 0 {
			at += has + len(member)
		} else if code != "" {
			code = member + strings.TrimSuffix(code, "\n")
		}
		out.Write(document[begin:at])
		out.WriteString(code)
		begin = at
	}
	out.Write(document[begin:])
	return guideLink.ReplaceAll(out.Bytes(), []byte("]("+pathGuides+"/$1"))
}

// guideLink matches the beginning of a link to a guide in the repository.
var guideLink = regexp.MustCompile(regexp.QuoteMeta("]("+repository+"docs/") + `([a-z-]+)\.md`)

// operationID matches the line of an operation's id, without its end.
var operationID = regexp.MustCompile(`(?m)^      operationId: (\w+)$`)

// samplesOf returns the elements of x-codeSamples for an operation. It is empty if there is no code.
func samplesOf(operation string) (elements string) {
	for _, language := range []struct{ name, source, function, client string }{
		{"Go", samples.Go, "\nfunc " + strings.ToUpper(operation[:1]) + operation[1:] + "(", "c := client.Must(client.FromEnv())\n"},
		{"TypeScript", samples.TypeScript, "\nexport async function " + operation + "(", "const quittance = new Quittance({ url, key });\n"},
	} {
		_, rest, found := strings.Cut(language.source, language.function)
		if !found {
			continue
		}
		_, rest, _ = strings.Cut(rest, "{\n")
		body, _, _ := strings.Cut(rest, "\n}\n")
		body = indent.ReplaceAllString(strings.TrimSuffix(body, "\n\treturn nil"), "")
		text, err := json.Marshal(language.client + body + "\n")
		if err != nil {
			panic(fmt.Errorf("encode the code for %s: %w", operation, err))
		}
		elements += fmt.Sprintf("        - {lang: %s, source: %s}\n", language.name, text)
	}
	return elements
}

// indent is the indentation of a function's body.
var indent = regexp.MustCompile(`(?m)^(\t|  )`)
