package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// object is a JSON object as it was sent: its values are nil, bool,
// json.Number, string, []any and object.
type object map[string]any

// parseObject reads one JSON object (RFC 8259) more strictly than
// encoding/json does: the text must be UTF-8, names must not repeat within an
// object, and nesting ends at MaxDepth. Names keep their case.
func parseObject(text []byte) (object, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("it is not UTF-8")
	}
	// The token reader below is lenient about what stands between tokens.
	if err := json.Unmarshal(text, new(json.RawMessage)); err != nil {
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			return nil, fmt.Errorf("at byte %d: %w", syntax.Offset, err)
		}
		return nil, err
	}
	p := parser{json.NewDecoder(bytes.NewReader(text))}
	p.UseNumber()
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	o, ok := v.(object)
	if !ok {
		return nil, fmt.Errorf("it is %s", kind(v))
	}
	return o, nil
}

type parser struct{ *json.Decoder }

// value reads the next value, which stands inside depth others.
func (p parser) value(depth int) (any, error) {
	token, err := p.Token()
	if err != nil {
		return nil, err
	}
	open, ok := token.(json.Delim)
	if !ok {
		return token, nil
	}
	if depth == MaxDepth {
		return nil, fmt.Errorf("at byte %d: objects and arrays are nested more than %d deep", p.InputOffset(), MaxDepth)
	}
	if open == '{' {
		return p.object(depth + 1)
	}
	array := []any{}
	for p.More() {
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		array = append(array, v)
	}
	_, err = p.Token()
	return array, err
}

// object reads the rest of an object, whose members stand inside depth others.
func (p parser) object(depth int) (object, error) {
	o := object{}
	for p.More() {
		token, err := p.Token()
		if err != nil {
			return nil, err
		}
		name, ok := token.(string)
		if !ok {
			return nil, fmt.Errorf("at byte %d: a member has no name", p.InputOffset())
		}
		if _, twice := o[name]; twice {
			return nil, fmt.Errorf("at byte %d: the name %.40q stands twice in an object", p.InputOffset(), name)
		}
		if o[name], err = p.value(depth); err != nil {
			return nil, err
		}
	}
	_, err := p.Token()
	return o, err
}

// text returns the member of that name, which must be a string. An error says
// what is wrong with it.
func (o object) text(name string) (string, error) {
	v, ok := o[name]
	if !ok {
		return "", errors.New("is required")
	}
	s, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("must be a string; it is %s", kind(v))
	}
	return s, nil
}

// kind names a value's JSON type for people.
func kind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case json.Number:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "an array"
	}
	return "an object"
}

// object returns the member of that name, which must be an object; path is
// that of o. With an error it returns an empty object.
func (o object) object(path, name string) (object, error) {
	switch v := o[name].(type) {
	case object:
		return v, nil
	case nil:
		return nil, wrong(path+name, "is required")
	default:
		return nil, wrong(path+name, "must be an object; it is %s", kind(v))
	}
}
