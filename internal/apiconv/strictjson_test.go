package apiconv_test

import (
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/apiconv"
)

func TestObject(t *testing.T) {
	t.Parallel()
	nested := func(depth int) string {
		return `{"a":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + "}"
	}
	for _, text := range []string{`{}`, ` {"a":1,"A":2} `, `{"a":{"b":[1,"\ud83d\ude00",null]}}`, nested(apiconv.MaxDepth)} {
		if _, err := apiconv.Object([]byte(text)); err != nil {
			t.Errorf("%.40s: %v", text, err)
		}
	}
	for _, text := range []string{``, `[]`, `null`, `{} {}`, `{"a":1,"a":2}`, `{"a":{"b":1,"b":1}}`, `{"a":"\ud83d"}`, "{\"a\":\"\xff\"}", `{"a" 1}`, nested(apiconv.MaxDepth + 1)} {
		if o, err := apiconv.Object([]byte(text)); err == nil {
			t.Errorf("%.40s: %v, want an error", text, o)
		}
	}
}
