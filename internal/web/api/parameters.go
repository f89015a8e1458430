package api

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/spelling"
)

// ownCode maps parameters to their error codes, if not invalid_field.
var ownCode = map[string]apitypes.ErrorCode{
	"status":   apitypes.CodeInvalidStatus,
	"chainKey": apitypes.CodeInvalidChain,
}

// parameterError returns the error of a parameter, such as "must be a number".
func parameterError(name, what string, args ...any) error {
	if code, ok := ownCode[name]; ok {
		return problemf(code, name+" "+what+".", args...)
	}
	return invalidField(name, what, args...)
}

// checked returns h for a route with the known parameters.
func checked(known []string, h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := checkParameters(r, known); err != nil {
			return err
		}
		return h(w, r)
	}
}

// checkParameters refuses a query that does not parse, that has a parameter which is not
// among known, or that has one of them twice. include may be repeated.
func checkParameters(r *http.Request, known []string) error {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return invalidField("query", "does not parse: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if name == "" {
			return invalidField("query", "has a parameter without a name")
		}
		if !slices.Contains(known, name) && (metadataKey(name) == "" || !slices.Contains(known, "metadata[key]")) {
			return unknownParameter(name, known)
		}
		if len(values[name]) > 1 && name != "include" {
			return parameterError(name, "must occur once")
		}
	}
	return nil
}

// maxUnknown bounds an unknown parameter's name in an error, in characters.
const maxUnknown = 40

// unknownParameter returns the error of a parameter that the operation does not have.
func unknownParameter(name string, known []string) error {
	field := fmt.Sprintf("%.*s", maxUnknown, strings.ToValidUTF8(name, "?"))
	const what = "is not a parameter of this operation"
	switch similar := spelling.Nearest(name, known); {
	case similar != "":
		return invalidField(field, what+"%s", spelling.DidYouMean(similar))
	case len(known) == 0:
		return invalidField(field, what+", which has none")
	}
	return invalidField(field, what+", which has %s", strings.Join(known, ", "))
}
