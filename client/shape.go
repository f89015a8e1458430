package client

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/quittance/quittance/apitypes"
)

// check returns what is wrong with a decoded response, or "".
type check func() string

// is checks that the response has the requested id.
func is(what, id string, got *string) check {
	return func() string { return compare(what, id, *got) }
}

// isEvent is like is for an event.
func isEvent(id string, got *apitypes.EventRecord) check {
	return func() string { return compare("event", id, got.ID()) }
}

func compare(what, id, got string) string {
	if got != id {
		return fmt.Sprintf("it has the %s %q in place of %q", what, got, id)
	}
	return ""
}

// decode decodes a success into answer, unless that is nil. It returns evidence that the service did not send the
// response, or "". It checks the members that openapi.yaml requires at the top level, and the ids of objects below it,
// which is enough to recognize foreign responses. The response may have more members.
func decode(r request, response *http.Response, text []byte, answer any, checks []check) string {
	if len(text) > MaxAnswer {
		return fmt.Sprintf("the body exceeds %d bytes", MaxAnswer)
	}
	if answer == nil {
		if response.StatusCode != http.StatusNoContent {
			return "it should be 204 without a body"
		}
		return ""
	}
	if reason := wrongType(r, response); reason != "" {
		return reason
	}
	if raw, ok := answer.(*[]byte); ok { // for an answer that is not JSON
		*raw = text
		return ""
	}
	into := reflect.ValueOf(answer).Elem()
	reason := mismatch(text, into.Type(), true, "the body")
	if len(text) == 0 {
		reason = "it has no body"
	}
	if reason == "" {
		if err := json.Unmarshal(text, answer); err != nil {
			reason = err.Error()
		}
	}
	for i := 0; i < len(checks) && reason == ""; i++ {
		reason = checks[i]()
	}
	if reason != "" {
		into.SetZero() // the caller must not get a partial answer
	}
	return reason
}

// wrongType returns why a response does not have the first type that a request accepts, or "". JSON may be without a
// type.
func wrongType(r request, response *http.Response) string {
	accept := r.header.Get("Accept")
	if accept == "" {
		accept = acceptJSON
	}
	want, _, _ := strings.Cut(accept, ",")
	given := response.Header.Get("Content-Type")
	got, _, err := mime.ParseMediaType(given)
	if err == nil && got == want || given == "" && accept == acceptJSON {
		return ""
	}
	return fmt.Sprintf("it is of the type %q, not %s", given, want)
}

// mismatch returns how a JSON text differs from the text that decodes into a type, or "". It checks all required
// members of an object at the top level; below it, members that are, or have, an id.
func mismatch(text json.RawMessage, of reflect.Type, top bool, name string) string {
	switch of.Kind() {
	case reflect.Pointer:
		return mismatch(text, of.Elem(), top, name)
	case reflect.Slice:
		var elements []json.RawMessage
		if err := json.Unmarshal(text, &elements); err != nil || elements == nil {
			return name + " is not an array"
		}
		for i, element := range elements {
			if reason := mismatch(element, of.Elem(), false, fmt.Sprintf("%s[%d]", name, i)); reason != "" {
				return reason
			}
		}
	case reflect.Struct:
		return mismatchedObject(text, of, top, name)
	default:
		if len(text) == 0 || string(text) == "null" {
			return name + " is missing"
		}
	}
	return ""
}

// mismatchedObject is mismatch for an object.
func mismatchedObject(text json.RawMessage, of reflect.Type, top bool, name string) string {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil || members == nil {
		return name + " is not an object"
	}
	for _, m := range required(of) {
		if !top && m.name != "id" && !hasID(m.of) {
			continue
		}
		if reason := mismatch(members[m.name], m.of, false, name+"'s "+m.name); reason != "" {
			return reason
		}
	}
	return ""
}

// member is a member of a type of apitypes.
type member struct {
	name string
	of   reflect.Type
}

// required returns the members that a type of apitypes always has, which are the ones without omitempty.
func required(of reflect.Type) []member {
	var members []member
	for i := range of.NumField() {
		field := of.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "" || name == "-" || strings.Contains(options, "omitempty"):
		case of == reflect.TypeFor[apitypes.EventRecord]() && name == "event": // it is raw
			members = append(members, member{name, reflect.TypeFor[apitypes.Envelope]()})
		default:
			members = append(members, member{name, field.Type})
		}
	}
	return members
}

// hasID reports whether a type of apitypes is an object with an id.
func hasID(of reflect.Type) bool {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return of.Kind() == reflect.Struct && slices.ContainsFunc(required(of), func(m member) bool { return m.name == "id" })
}
