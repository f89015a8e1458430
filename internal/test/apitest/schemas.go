package apitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// documentURL is the base URL of the specification's schemas.
const documentURL = "file:///openapi.json"

// schemas compiles each schema of the specification once.
type schemas struct {
	mu       sync.Mutex // guards what follows
	compiler *jsonschema.Compiler
	compiled map[*openapi3.Schema]*jsonschema.Schema
	added    int // resources
}

func newSchemas(doc *openapi3.T) (*schemas, error) {
	s := &schemas{compiler: jsonschema.NewCompiler(), compiled: make(map[*openapi3.Schema]*jsonschema.Schema)}
	s.compiler.DefaultDraft(jsonschema.Draft2020)
	s.compiler.AssertFormat()
	s.compiler.UseRegexpEngine(compilePattern)
	return s, s.add(documentURL, doc)
}

// of returns the compiled schema.
func (s *schemas) of(schema *openapi3.SchemaRef) (*jsonschema.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if compiled := s.compiled[schema.Value]; compiled != nil {
		return compiled, nil
	}
	url := fmt.Sprintf("file:///schema-%d.json", s.added)
	if err := s.add(url, schema); err != nil {
		return nil, err
	}
	compiled, err := s.compiler.Compile(url)
	if err != nil {
		return nil, fmt.Errorf("compile a schema of openapi.yaml: %w", err)
	}
	s.compiled[schema.Value] = compiled
	return compiled, nil
}

// add adds a resource that refers to the specification's components by absolute references.
func (s *schemas) add(url string, resource any) error {
	text, err := json.Marshal(resource)
	if err != nil {
		return fmt.Errorf("encode a schema of openapi.yaml: %w", err)
	}
	text = bytes.ReplaceAll(text, []byte(`"#/components/`), []byte(`"`+documentURL+`#/components/`))
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("decode a schema of openapi.yaml: %w", err)
	}
	s.added++
	return s.compiler.AddResource(url, parsed)
}

// codeUnit is an escape of ECMAScript's patterns that Go's do not have.
var codeUnit = regexp.MustCompile(`\\u([0-9A-Fa-f]{4})`)

// compilePattern compiles a pattern, which is written in the dialect of ECMAScript.
func compilePattern(pattern string) (jsonschema.Regexp, error) {
	return regexp.Compile(codeUnit.ReplaceAllString(pattern, `\x{$1}`))
}
