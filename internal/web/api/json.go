package api

import (
	"errors"
	"fmt"

	"github.com/quittance/quittance/internal/apiconv"
)

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

// object returns a member that must be an object; path is the path of o. With an error it returns an
// empty object.
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
