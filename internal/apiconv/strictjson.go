package apiconv

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxDepth bounds the nesting of objects and arrays.
const MaxDepth = 32

// Object parses one JSON object (RFC 8259), more strictly than encoding/json and
// close to I-JSON (RFC 7493): the text must be UTF-8 without lone surrogate escapes,
// names must be unique within an object, and nesting is bounded by MaxDepth. Names are
// case-sensitive. Its values are nil, bool, json.Number, string, []any and map[string]any.
func Object(text []byte) (map[string]any, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("it is not UTF-8")
	}
	// json.Decoder.Token accepts invalid separators between tokens.
	if err := json.Unmarshal(text, new(json.RawMessage)); err != nil {
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			return nil, fmt.Errorf("at byte %d: %w", syntax.Offset, err)
		}
		return nil, err
	}
	if at := loneSurrogate(text); at >= 0 {
		return nil, fmt.Errorf("at byte %d: %s is half of a surrogate pair, and the other half is missing", at, text[at:at+escapeLen])
	}
	p := parser{json.NewDecoder(bytes.NewReader(text))}
	p.UseNumber()
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	o, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("it is %s", Kind(v))
	}
	return o, nil
}

// escapeLen is the length of an escape such as \ud83d, in bytes.
const escapeLen = 6

// loneSurrogate returns the offset of the first lone surrogate escape in a JSON text, or -1.
// encoding/json replaces it by another character without an error.
func loneSurrogate(text []byte) int {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' { // occurs only in strings
			continue
		}
		first, ok := escaped(text[i:])
		switch second, more := escaped(text[min(i+escapeLen, len(text)):]); {
		case !ok:
			i++ // skip the escaped character, which may be a backslash
		case !utf16.IsSurrogate(first):
			i += escapeLen - 1
		case more && utf16.DecodeRune(first, second) != unicode.ReplacementChar:
			i += 2*escapeLen - 1
		default:
			return i
		}
	}
	return -1
}

// escaped returns the UTF-16 code unit of the \u escape at the beginning of text, if
// there is one.
func escaped(text []byte) (rune, bool) {
	if len(text) < escapeLen || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(text[2:escapeLen]), 16, 16)
	return rune(unit), err == nil
}

type parser struct{ *json.Decoder }

// value reads the next value, at the given nesting depth.
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

// object reads the rest of an object. Its members are at the given nesting depth.
func (p parser) object(depth int) (map[string]any, error) {
	o := map[string]any{}
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

// Kind returns a value's JSON type for error texts.
func Kind(v any) string {
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
