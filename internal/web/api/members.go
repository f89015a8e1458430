package api

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/spelling"
)

// headerIgnored lists members of a request that the operation does not have.
const headerIgnored = "Quittance-Ignored-Members"

// maxIgnored bounds the members that headerIgnored lists.
const maxIgnored = 5

// readJSON reads a body that is one JSON object.
func readJSON(w http.ResponseWriter, r *http.Request) (object, error) {
	if err := wantJSON(r); err != nil {
		return nil, err
	}
	body, err := readBody(w, r)
	if err != nil {
		return nil, invalidJSON(err)
	}
	o, err := parseObject(body)
	if err != nil {
		return nil, invalidJSON(err)
	}
	return o, nil
}

// readObject reads a body that is one JSON object with the members of T. Others are ignored, and listed in headerIgnored;
// a request that prefers strict handling (RFC 7240) is refused for them.
func readObject[T any](w http.ResponseWriter, r *http.Request) (object, error) {
	o, err := readJSON(w, r)
	if err != nil {
		return nil, err
	}
	unknown := membersOf(reflect.TypeFor[T]()).unknown("", o)
	if prefersStrict(r.Header) {
		w.Header().Set("Preference-Applied", "handling=strict")
		if len(unknown) > 0 {
			return nil, invalidField(unknown[0].path, "is not a member of this request%s", unknown[0].hint())
		}
	}
	for _, u := range unknown[:min(len(unknown), maxIgnored)] {
		w.Header().Add(headerIgnored, u.String())
	}
	return o, nil
}

// taking returns a handler of requests with a body of the members of T.
func taking[T any](h func(w http.ResponseWriter, r *http.Request, o object) error) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		o, err := readObject[T](w, r)
		if err != nil {
			return err
		}
		return h(w, r, o)
	}
}

// takingOnce is taking for requests that may have an Idempotency-Key.
func takingOnce[T any](h func(w http.ResponseWriter, r *http.Request, o object, once ledger.Once) error) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		once, err := onceFor(r)
		if err != nil {
			return err
		}
		return taking[T](func(w http.ResponseWriter, r *http.Request, o object) error { return h(w, r, o, once) })(w, r)
	}
}

// prefersStrict reports whether a request has the preference handling=strict.
func prefersStrict(h http.Header) bool {
	for preference := range strings.SplitSeq(strings.Join(h.Values("Prefer"), ","), ",") {
		preference, _, _ = strings.Cut(preference, ";")
		name, value, _ := strings.Cut(preference, "=")
		if strings.EqualFold(strings.TrimSpace(name), "handling") && strings.EqualFold(strings.Trim(value, " \t\""), "strict") {
			return true
		}
	}
	return false
}

// ignoredMembers returns a sentence about the members in headerIgnored, for the detail of an error, or "".
func ignoredMembers(h http.Header) string {
	if ignored := h.Values(headerIgnored); len(ignored) > 0 {
		return " Ignored because they are unknown: " + strings.Join(ignored, ", ") + "."
	}
	return ""
}

// members are the names of an object's members, each with the members of its own objects. It is nil for other values,
// and for objects with any members.
type members map[string]members

// knownMembers caches membersOf by type.
var knownMembers sync.Map

// membersOf returns the members of the JSON objects of a type. A field without a JSON name adds its own members.
func membersOf(t reflect.Type) members {
	if known, ok := knownMembers.Load(t); ok {
		return known.(members)
	}
	for kind := t.Kind(); kind == reflect.Pointer || kind == reflect.Slice; kind = t.Kind() {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	known := make(members)
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			known[name] = membersOf(f.Type)
		} else {
			maps.Copy(known, membersOf(f.Type))
		}
	}
	knownMembers.Store(t, known)
	return known
}

// unknownMember is a member that a request has and its operation does not.
type unknownMember struct {
	path, name string  // path ends with name
	known      members // of the same object
}

// hint returns the nearest known member, to continue an error, or "".
func (u unknownMember) hint() string {
	similar := spelling.Nearest(u.name, slices.Sorted(maps.Keys(u.known)))
	if similar == "" {
		return ""
	}
	return spelling.DidYouMean(strings.TrimSuffix(u.path, u.name) + similar)
}

// String returns the quoted path, in ASCII, with the suggestion.
func (u unknownMember) String() string {
	hint := strings.TrimPrefix(u.hint(), "; ")
	if hint != "" {
		hint = " (" + hint + ")"
	}
	return fmt.Sprintf("%+q", u.path) + hint
}

// unknown returns the unknown members of the value at a path, in the order of their names.
func (m members) unknown(path string, value any) (all []unknownMember) {
	if m == nil {
		return nil
	}
	switch value := value.(type) {
	case []any:
		for i, element := range value {
			all = append(all, m.unknown(fmt.Sprintf("%s[%d]", path, i), element)...)
		}
	case map[string]any:
		return m.unknownIn(path, value)
	case object:
		return m.unknownIn(path, value)
	}
	return all
}

func (m members) unknownIn(path string, o map[string]any) (all []unknownMember) {
	if path != "" {
		path += "."
	}
	for name, value := range o {
		below, known := m[name]
		if known {
			all = append(all, below.unknown(path+name, value)...)
			continue
		}
		shown := fmt.Sprintf("%.*s", maxUnknown, strings.ToValidUTF8(name, "?"))
		all = append(all, unknownMember{path + shown, shown, m})
	}
	slices.SortFunc(all, func(a, b unknownMember) int { return strings.Compare(a.path, b.path) })
	return all
}

// object is a JSON object of package strictjson.
type object map[string]any

// parseObject parses the text of an object as apiconv.Object does.
func parseObject(text []byte) (object, error) { return apiconv.Object(text) }

// text returns a string member. The error explains why it is invalid.
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

// kind returns the JSON type of a value for error texts.
func kind(v any) string { return apiconv.Kind(v) }

// object returns a member that must be an object; path is the path of o. With an error it returns an empty object.
func (o object) object(path, name string) (object, error) {
	v, ok := o[name]
	if !ok {
		return nil, invalidField(path+name, "is required")
	}
	member, ok := v.(map[string]any)
	if !ok {
		return nil, invalidField(path+name, "must be an object; it is %s", kind(v))
	}
	return member, nil
}

// HeaderIdempotencyKey is the header of draft-ietf-httpapi-idempotency-key-header.
const HeaderIdempotencyKey = "Idempotency-Key"

// headerReplayed marks the response to a request that an earlier one with the same key carried out.
const headerReplayed = "Idempotency-Replayed"

// markReplay sets headerReplayed if the request was carried out before.
func markReplay(w http.ResponseWriter, once ledger.Once) {
	if once.Replayed != nil && *once.Replayed {
		w.Header().Set(headerReplayed, "true")
	}
}

// idempotencyKey returns the request's key, or "" without one. A key is visible
// ASCII, bare or quoted as a string of RFC 9651; both forms are the same key.
func idempotencyKey(h http.Header) (string, error) {
	values := h.Values(HeaderIdempotencyKey)
	switch len(values) {
	case 0:
		return "", nil
	case 1:
	default:
		return "", invalidField(HeaderIdempotencyKey, "must occur once")
	}
	key := values[0]
	if strings.HasPrefix(key, `"`) {
		var err error
		if key, err = unquote(key); err != nil {
			return "", invalidField(HeaderIdempotencyKey, "%v", err)
		}
	}
	if key == "" || len(key) > MaxIdempotencyKey || !isVisibleASCII(key) {
		return "", invalidField(HeaderIdempotencyKey, "must be 1 to %d visible ASCII characters", MaxIdempotencyKey)
	}
	return key, nil
}

// onceFor returns the Idempotency-Key of a request, in the scope of its principal.
func onceFor(r *http.Request) (ledger.Once, error) {
	key, err := idempotencyKey(r.Header)
	return ledger.Once{Key: key, Scope: idempotencyScope(access.FromContext(r.Context())), Replayed: new(bool)}, err
}

// unquote returns the text of a quoted string, in which a backslash escapes a quote or a backslash.
func unquote(s string) (string, error) {
	malformed := errors.New(`must be a bare key or one quoted string such as "abc"`)
	var text strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			if i != len(s)-1 {
				return "", malformed
			}
			return text.String(), nil
		case '\\':
			i++
			if i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", malformed
			}
		}
		text.WriteByte(s[i])
	}
	return "", malformed
}

// isVisibleASCII reports whether s is ASCII without spaces and control characters.
func isVisibleASCII(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' })
}
